/*===- FakeLibrary.c - A library that burst can do without ---------------===*/

int fake_add(int a, int b) { return a + b; }

const char *fake_name(void) { return "fake"; }
