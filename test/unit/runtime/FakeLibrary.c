/*===- FakeLibrary.c - A library that burst can do without ---------------===*/
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */

int fake_add(int a, int b) { return a + b; }

const char *fake_name(void) { return "fake"; }
