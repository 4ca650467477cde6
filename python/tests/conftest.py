# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "all: run by scripts/test --all")
    config.addinivalue_line("markers", "long: takes long; run by scripts/test --full")
