/*===- burst/version.h - the version of burst --------------------*- C -*-===*\
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|* The one place that says it: the build reads it from here.                  *|
|*                                                                            *|
|* While the major number is 0, two versions fit if their minor numbers are   *|
|* equal as well; later, if the major numbers are. That holds for a host and  *|
|* the library it loads, and for a program and the library that runs it.      *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef BURST_VERSION_H
#define BURST_VERSION_H

#define BURST_VERSION_MAJOR 0
#define BURST_VERSION_MINOR 2
#define BURST_VERSION_PATCH 0
#define BURST_VERSION "0.2.0"

#endif /* BURST_VERSION_H */
