# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The tests that are programs: each case of gtest counts as a test."""

import os

import lit.formats

config.name = "burst-unit"
config.test_source_root = os.path.join(config.burst_build, "test", "unit")
config.test_exec_root = config.test_source_root

# Only what this build makes: an earlier one may have left programs behind.
programs = set(filter(None, config.burst_unittests))
if os.environ.get("BURST_TEST_SHORT"):
    programs -= set(config.burst_long_unittests)
for program in programs:
    if not os.path.exists(os.path.join(config.test_source_root, program)):
        lit_config.fatal(f"unit test {program} is not built, build burst-test-depends first")
config.test_format = lit.formats.GoogleTest(".", "")
config.test_format.test_suffixes = programs
config.test_format.test_prefixes = programs

# What asks programs for more trials, or for the same ones again.
for name in ("BURST_TEST_FULL", "BURST_TEST_SHORT", "BURST_SEED", "BURST_COUNT"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
