# setup   what building and testing need and a fresh machine may lack
# demo    the product run for real, without account or network
# bench   figures of the release binary, each beside a floor of the same run
# test    everything that is proved, on this machine
# drills  the kill drill at length: KILLS=200, SEED to repeat a plan; its report is target/drills/kills.txt
# fuzz    every fuzz target for FUZZ_MINUTES=1; needs a nightly compiler. TARGETS names fewer
# lint    format, clippy, and what may be in the dependency tree

CARGO ?= cargo
TARGET_DIR ?= $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)
NEXTEST_PROFILE ?= $(if $(CI),ci,default)
PACKAGES := tmux git npm

KILLS ?= 200
SEED ?=
FUZZ_MINUTES ?= 1
TARGETS ?= webhook_body keywords references config event_log

.PHONY: setup setup-lint demo test bench drills fuzz setup-fuzz lint advisories

setup:
	@missing=""; for tool in $(PACKAGES); do command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
	if [ -n "$$missing" ]; then \
		if ! command -v apt-get >/dev/null; then echo "setup: install$$missing, then run this again" >&2; exit 1; fi; \
		as=""; if [ "$$(id -u)" != 0 ]; then as=sudo; fi; \
		if [ -n "$$as" ] && ! $$as -n true 2>/dev/null; then \
			echo "setup: run 'sudo apt-get install$$missing', then run this again" >&2; exit 1; fi; \
		$$as apt-get update -q && $$as env DEBIAN_FRONTEND=noninteractive apt-get install -qy $$missing; \
	fi
	@command -v $(CARGO) >/dev/null || { echo "setup: install Rust 1.95 or later with rustup, then run this again" >&2; exit 1; }
	@$(CARGO) nextest --version >/dev/null 2>&1 || $(CARGO) install cargo-nextest --locked
	@if [ -f package-lock.json ]; then npm ci --no-audit --no-fund --loglevel=error; fi

setup-lint:
	@$(CARGO) deny --version >/dev/null 2>&1 || $(CARGO) install cargo-deny --version '^0.20' --locked

demo:
	$(CARGO) build -p the-loop --bin the-loop
	$(TARGET_DIR)/debug/the-loop demo

test: setup
	$(CARGO) build --workspace
	$(CARGO) nextest run --workspace --profile $(NEXTEST_PROFILE)

bench: setup
	$(CARGO) build --release -p the-loop --bin the-loop
	$(CARGO) build -p the-loop-tests --bins
	$(TARGET_DIR)/debug/bench $(TARGET_DIR)/release/the-loop $(TARGET_DIR)/debug/recorder $(TARGET_DIR)/bench/report.json

drills: setup
	$(CARGO) build --workspace
	@mkdir -p $(TARGET_DIR)/drills
	THE_LOOP_DRILL_KILLS=$(KILLS) $(if $(SEED),THE_LOOP_DRILL_SEED=$(SEED)) THE_LOOP_DRILL_REPORT=$(abspath $(TARGET_DIR))/drills/kills.txt \
		$(CARGO) nextest run -p the-loop-tests --test host --profile drills --run-ignored only --no-capture -E 'test(/^drill::/)'

setup-fuzz:
	@$(CARGO) +nightly --version >/dev/null 2>&1 || { echo "fuzz: run 'rustup toolchain install nightly', then this again" >&2; exit 1; }
	@$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install cargo-fuzz --locked

# What is found is kept apart from the committed corpus; what breaks is in fuzz/artifacts.
fuzz: setup-fuzz
	@for target in $(TARGETS); do \
		mkdir -p $(TARGET_DIR)/fuzz/corpus/$$target; \
		$(CARGO) +nightly fuzz run --target-dir $(TARGET_DIR)/fuzz $$target $(TARGET_DIR)/fuzz/corpus/$$target fuzz/corpus/$$target -- \
			-max_total_time=$$(($(FUZZ_MINUTES) * 60)) -timeout=10 -max_len=65536 -print_final_stats=1 -verbosity=0 || exit 1; \
	done

lint: setup-lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	$(CARGO) deny --log-level error check bans licenses sources

advisories: setup-lint
	$(CARGO) deny check advisories
