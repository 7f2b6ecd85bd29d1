"""Which picture files a command reads, and where it writes what it made of them: never over a picture it was given."""

from __future__ import annotations

from collections import Counter
from io import BytesIO
from pathlib import Path

from PIL import Image

from unshuffle.experiments.files import write
from unshuffle.experiments.problem import Problem

LARGEST_QUALITY = {".jpg": 95, ".jpeg": 95, ".webp": 95}


def pictures_in(given: list[Path]) -> list[Path]:
    """Every file, and of every folder the files whose names end like a picture's."""
    readable = Image.registered_extensions()
    paths = []
    for path in given:
        if not path.is_dir():
            paths.append(path)
            continue
        inside = sorted(file for file in path.iterdir() if file.suffix.lower() in readable and file.is_file())
        if not inside:
            raise Problem(f"{path} is a folder without pictures")
        paths += inside
    return list(dict.fromkeys(paths))


def targets(paths: list[Path], out: Path | None, what: str = "solved") -> list[Path]:
    """The name of what is made of each picture; without a suffix where that depends on the picture's mode.

    `out` is a file if there is one picture and it has a suffix, and a folder otherwise.
    """
    if out is not None and len(paths) == 1 and out.suffix and not out.is_dir():
        known = Image.registered_extensions().get(out.suffix.lower())
        if known not in Image.SAVE:
            raise Problem(f"cannot write pictures as {out.suffix} ({out}); end the name in .png, .jpg or .tif")
        return [out]
    if out is not None and out.exists() and not out.is_dir():
        raise Problem(f"{out} is a file; {len(paths)} pictures need a folder")
    folder = Path() if out is None else out
    stems = Counter(path.stem for path in paths)
    names = [path.stem if stems[path.stem] == 1 else path.name.replace(".", "-") for path in paths]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise Problem(f"several pictures are called {twice[0]}; solve them one by one, with --out")
    return [folder / f"{name}-{what}" for name in names]


def save(picture: Image.Image, target: Path, inputs: list[Path]) -> Path:
    """Write it whole or not at all, as PNG unless the name says otherwise; returns the name."""
    if target.suffix.lower() not in Image.registered_extensions():
        target = target.with_name(target.name + (".png" if _fits_png(picture) else ".tif"))
    if target.resolve() in {path.resolve() for path in inputs}:
        raise Problem(f"{target} is a picture that was given, and is not overwritten; choose another --out")
    kind = Image.registered_extensions()[target.suffix.lower()]
    file = BytesIO()
    try:
        quality = LARGEST_QUALITY.get(target.suffix.lower())
        picture.save(file, kind, **({} if quality is None else {"quality": quality}))
    except (OSError, ValueError, KeyError) as error:
        raise Problem(
            f"a picture of mode {picture.mode} cannot be written as {kind} ({error}); try .png or .tif"
        ) from error
    write(target, file.getvalue())
    return target


def _fits_png(picture: Image.Image) -> bool:
    return picture.mode in ("1", "L", "LA", "I", "I;16", "P", "RGB", "RGBA")
