/*===- main.c - the binary of all tools --------------------------*- C -*-===*\
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|* The tools are in libburst.so, beside the compiler that they call.          *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

int burst_main(int argc, char **argv);

int main(int argc, char **argv) { return burst_main(argc, argv); }
