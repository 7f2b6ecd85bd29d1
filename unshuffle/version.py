"""The version, once: the package, its metadata and every record read it from here."""

__version__ = "0.1.0"
