# serried: `make run` and `make test` do all the set-up on a fresh machine.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# What is imported is compiled once, then, and not by every rank anew; so pip need not compile all.
unexport PYTHONDONTWRITEBYTECODE
PIP = $(BIN)/pip install -q --no-compile

.DEFAULT_GOAL := help
.PHONY: help adapters run test quick check types style unit bench oracle goldens soak screenshots film docs edition sbom audit \
	headless browser hosts shells system modules \
	letters runs ranks pages panels web_modules examples views readings others paced clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(VENV)/.run ## install, train for real, open the workbench on it
	$(BIN)/serried demo

test: ## install, check and run every test
	@$(MAKE) --no-print-directory --jobs 2 $(VENV)/.test system
	@$(MAKE) --no-print-directory letters
	@$(MAKE) --no-print-directory --jobs $(JOBS) $(SYNC) $(LONG) types $(PARTS) style
	@$(MAKE) --no-print-directory paced

check: $(VENV)/.test modules ## format, lint, imports, types of Python and of the page's modules
	@$(MAKE) --no-print-directory --jobs 2 types style

types: $(VENV)/.test
	$(BIN)/mypy

style: $(VENV)/.test modules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-logo
	npm run --silent check

# No browser and no ranks; a subset that reaches into every room, of few examples each.
QUICK = tests/test_action.py tests/test_api.py tests/test_imports.py tests/test_limits.py \
	tests/mesh tests/frameworks/test_layouts.py tests/launch/test_files.py \
	tests/launch/test_request.py tests/pipeline/test_simulate.py tests/pipeline/test_registry.py \
	tests/trace/merge/test_in_memory.py tests/trace/measure/test_analysis.py tests/plan \
	tests/runtime/job/test_settings.py tests/views/test_table.py tests/views/layout \
	tests/views/cli/test_help.py
quick: $(VENV)/.test ## lint, imports, types and a subset of tests, in under a minute
	$(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --hypothesis-profile quick $(QUICK)

# Parts run side by side, four at a time on two cores (with JOBS=1 one after the other): ranks wait
# for one another, and a browser for its page. Each has one process, which alone collects and
# prepares what its tests share, so that long ones are two; the longest begin. What a part prints
# comes whole, at its end. What tells slow from healthy by its pace has the machine to itself.
JOBS ?= 4
SYNC = $(if $(filter output-sync,$(.FEATURES)),--output-sync)
LONG = runs ranks pages panels
PARTS = readings others views examples web_modules
PACE = tests/runtime/check/test_slow_hosts.py tests/runtime/test_slow_rank.py
unit: $(VENV)/.test headless hosts shells modules letters
	@$(MAKE) --no-print-directory --jobs $(JOBS) $(SYNC) $(LONG) $(PARTS)
	@$(MAKE) --no-print-directory paced

letters: $(VENV)/.test # which tests draw text from; processes that write them down at once disturb each other
	@[ -d .hypothesis/unicode_data ] || \
		$(BIN)/python -W ignore -c 'from hypothesis.strategies import text; text().example()'

web_modules:
	node --test $$(find tests/web_modules -name "*.test.js")

WEB = tests/views/web
PAGES = $(WEB)/test_page_[a-o]*
pages: # the page in a browser
	$(BIN)/python -m pytest -q $(PAGES)

panels: # the rest of it, and what serves it
	$(BIN)/python -m pytest -q $(WEB) --ignore-glob '$(PAGES)'

examples: # on ranks of their own
	$(BIN)/python -m pytest -q tests/examples

views: # but for the page
	$(BIN)/python -m pytest -q tests/views --ignore tests/views/web

READINGS = tests/diagnose tests/launch tests/trace
readings:
	$(BIN)/python -m pytest -q $(READINGS)

others: # with the examples in the package's docstrings
	$(BIN)/python -m pytest -q $(patsubst %,--ignore %,tests/runtime tests/examples tests/views $(READINGS))

RUNS = $(addprefix tests/runtime/,checkpoint job model pretrained run)
runs: # trainings, and what they save
	$(BIN)/python -m pytest -q $(RUNS)

ranks: # all else that starts ranks
	$(BIN)/python -m pytest -q tests/runtime $(patsubst %,--ignore %,$(RUNS) $(PACE))

paced:
	$(BIN)/python -m pytest -q $(PACE)

# llm-analysis asks for a transformers that is older than the tests'; without it nothing is lacking.
bench: $(VENV)/.test browser ## print every benchmark beside its peer
	-@$(BIN)/pip install -q --no-deps --target $(VENV)/peers --upgrade llm-analysis==0.2.2 fire termcolor
	-@[ -d $(VENV)/peers-page/gradio ] || $(BIN)/pip install -q --target $(VENV)/peers-page gradio==6.31.0
	@set -e; export PYTHONPATH=$(VENV)/peers; \
	for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python -W ignore $$file; done; \
	echo "== benchmarks.accuracy"; $(BIN)/python -m benchmarks.accuracy benchmarks/data
	@echo "== benchmarks.diagnosis"; $(BIN)/python -m benchmarks.diagnosis benchmarks/diagnosis/excerpts
	@$(BIN)/python -m benchmarks.diagnosis benchmarks/diagnosis/gathered
	@$(BIN)/python -m benchmarks.diagnosis.runs benchmarks/diagnosis/hangs
	@$(BIN)/python -m benchmarks.diagnosis.size

oracle: $(VENV)/.test ## fuzz the layouts against the real packages, each in an environment of its own
	$(BIN)/python -m pytest -q -m oracle -o addopts='--import-mode=importlib --strict-markers' tests/oracle

goldens: $(VENV)/.test ## make the goldens again whose packages are on PyPI
	$(BIN)/python -m tests.oracle --write

soak: $(VENV)/.test headless hosts ## long counts: kills, exits, fuzzing, injected faults, a thousand examples
	$(BIN)/python -W ignore -m benchmarks.diagnosis.faults --seeds 20 --healthy 100
	$(BIN)/python -m pytest -q -m "soak or hypothesis" --hypothesis-profile soak -o addopts='--import-mode=importlib --strict-markers'

# These packages are large, and no other test needs them.
adapters: $(VENV)/.test ## test what goes to W&B, MLflow and Gradio against their own packages
	@[ -d $(VENV)/adapters/gradio ] || $(PIP) --target $(VENV)/adapters 'wandb>=0.17' 'mlflow-skinny>=2.14' 'gradio>=6,<7'
	PYTHONPATH=$(VENV)/adapters $(BIN)/python -W ignore -m pytest -q -m adapters -o addopts='--import-mode=importlib --strict-markers' -o filterwarnings=default tests/test_space.py tests/views/cli/diagnose

screenshots: $(VENV)/.test browser ## draw the pictures of README and docs again
	$(BIN)/python -m docs.screenshots

film: $(VENV)/.test $(VENV)/.docs browser ## make the film on top of README and docs again
	$(BIN)/python -m docs.recording

docs: $(VENV)/.docs modules ## build the documentation's site in both languages, into site/
	$(BIN)/python -m website.built site

sbom: $(VENV)/.run ## list what serried runs on here as CycloneDX, into sbom.json
	@[ -x $(VENV)/sbom/bin/cyclonedx-py ] || { $(PYTHON) -m venv $(VENV)/sbom && \
		$(VENV)/sbom/bin/pip install -q 'cyclonedx-bom>=7,<8'; }
	$(VENV)/sbom/bin/cyclonedx-py environment $(BIN)/python --pyproject pyproject.toml \
		--output-reproducible -o sbom.json

# The list is of what is installed, torch's CPU build as torch; what PyPI does not answer for fails.
audit: $(VENV)/.run ## look for holes in the code, and in every package that is installed here
	@[ -x $(VENV)/audit/bin/pip-audit ] || { $(PYTHON) -m venv $(VENV)/audit && \
		$(VENV)/audit/bin/pip install -q '.[audit]'; }
	$(VENV)/audit/bin/bandit --quiet --configfile pyproject.toml --recursive src
	@$(BIN)/pip list --format freeze --exclude-editable | sed 's/+.*//' > $(VENV)/audit/installed.txt
	@echo "$$(wc -l < $(VENV)/audit/installed.txt) installed packages are asked for"
	$(VENV)/audit/bin/pip-audit --strict --disable-pip --no-deps -r $(VENV)/audit/installed.txt

edition: $(VENV)/.test browser ## draw every tab of the page; BEFORE=COMMIT lays an earlier one beside
	$(BIN)/python -m docs.edition screenshots/edition $(if $(BEFORE),--before $(BEFORE))

# ------------------------------------------------------------------ what the above install

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "serried needs Python 3.11 or newer; $$($(PYTHON) --version) was found. Try make PYTHON=python3.11"; exit 3; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[torch,web,trace]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[torch,web,mcp,trace,remote,ray,tensorboard,export,otlp,examples,bench,test]'
	@touch $@ $(VENV)/.run

$(VENV)/.docs: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e '.[docs]'
	@touch $@

APT = $$([ "$$(id -u)" = 0 ] || echo sudo) apt-get

browser: # the Chromium on PATH, else Debian's, with a font for Chinese
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
		command -v google-chrome >/dev/null || \
		{ $(APT) update -qq && $(APT) install -y -qq chromium fonts-noto-cjk; }

headless: # Debian's Chromium without a window, which draws the same for two thirds of the work; else any
	@command -v chromium-headless-shell >/dev/null || \
		{ $(APT) update -qq && $(APT) install -y -qq chromium-headless-shell fonts-noto-cjk; } || \
		$(MAKE) --no-print-directory browser

shells: # those whose completion is tested; the tests of one skip without it
	@{ command -v zsh && command -v fish; } >/dev/null || \
		{ $(APT) update -qq && $(APT) install -y -qq zsh fish; } || true

hosts: # ip and tc, with which tests make hosts of network namespaces; they skip without
	@{ command -v ip && command -v tc; } >/dev/null || \
		{ $(APT) update -qq && $(APT) install -y -qq iproute2; } || true

system: # one after the other, as Debian's packages are installed by one command at a time
	@for each in headless hosts shells modules; do $(MAKE) --no-print-directory $$each || exit; done

modules: node_modules/.ready
node_modules/.ready: package.json package-lock.json # what checks the page's modules
	@command -v npm >/dev/null || { $(APT) update -qq && $(APT) install -y -qq nodejs npm; }
	npm ci --silent --no-audit --no-fund
	@touch $@

clean: ## remove what was installed and made here
	rm -rf $(VENV) node_modules screenshots site runs .import_linter_cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
