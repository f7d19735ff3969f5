# Fuzz targets of a C part, which includes this file last. FUZZ: their names; NAME has tests/fuzz_NAME.c, its seeds in
# tests/seeds_NAME, and the sources FUZZED_NAME. `check` runs the seeds under the sanitizers. `fuzz` needs clang: each target
# tries new inputs for FUZZ_SECONDS, and keeps those that reach new code in build/found_NAME; a crash is an error.
CLANG   ?= clang
FUZZ_SECONDS ?= 600
FUZZER  := -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer

check: $(FUZZ:%=seeds-%)
seeds-%: $(BUILD)/seeds_%
	./$< tests/seeds_$*

fuzz: $(FUZZ:%=fuzz-%)
fuzz-%: $(BUILD)/fuzz_%
	mkdir -p $(BUILD)/found_$*
	./$< -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
		-artifact_prefix=$(BUILD)/$*- $(BUILD)/found_$* tests/seeds_$*

.SECONDEXPANSION:
$(FUZZ:%=$(BUILD)/seeds_%): $(BUILD)/seeds_%: tests/fuzz_%.c fuzz_main.c $$(FUZZED_$$*) $(HEADERS) $(MAKEFILE_LIST)
	mkdir -p $(BUILD)
	$(CC) $(WARNINGS) $(SANITIZE) $(FUZZ_INCLUDE) -o $@ $(filter %.c,$^) -ldl -lpthread
$(FUZZ:%=$(BUILD)/fuzz_%): $(BUILD)/fuzz_%: tests/fuzz_%.c $$(FUZZED_$$*) $(HEADERS) $(MAKEFILE_LIST)
	mkdir -p $(BUILD)
	$(CLANG) $(WARNINGS) $(FUZZER) $(FUZZ_INCLUDE) -o $@ $(filter %.c,$^) -ldl -lpthread

.PHONY: fuzz
