# `make demo` and `make test` do all the set-up themselves. They need Python ≥ 3.11, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TORCH := $(shell grep '^torch==' constraints.txt)
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: help demo serve test browser lint format bench clean

help:  ## this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

demo: $(VENV)/experiments  ## learn to sort ten numbers, and solve a picture (under a minute)
	$(BIN)/python -m unshuffle.demo

serve: $(VENV)/web  ## open the page in the browser: pictures, numbers, results (PORT=8000 for another port)
	$(BIN)/python -m unshuffle serve $(if $(PORT),--port $(PORT))

test: lint browser  ## linters, types and tests, as CI runs them
	$(BIN)/python -m pytest

browser:
	.ci/browser

lint: $(VENV)/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/dev  ## bring the code into form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/dev  ## speed and memory against the literal version of the paper (ten minutes on two cores)
	$(BIN)/python -m benchmarks.core

clean:  ## remove what was installed and made here
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis

# torch by itself and first: a package that asks for it later finds it there, and does not choose another build
$(VENV)/torch: constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "unshuffle needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) '$(TORCH)'
	touch $@

$(VENV)/experiments: $(VENV)/torch pyproject.toml
	$(INSTALL) -e '.[experiments]'
	touch $@

$(VENV)/web: $(VENV)/torch pyproject.toml
	$(INSTALL) -e '.[web]'
	touch $@ $(VENV)/experiments

$(VENV)/dev: $(VENV)/torch pyproject.toml
	$(INSTALL) -e '.[dev]'
	touch $@ $(VENV)/web $(VENV)/experiments
