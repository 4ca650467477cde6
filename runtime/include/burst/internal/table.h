//===- table.h - Functions of a library that may be missing -----*- C -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The functions of such a library that burst calls lie in a table: a struct
// whose first member is the path of the library and whose others are pointers
// to the functions, under their own names.
//
//===----------------------------------------------------------------------===//

#ifndef BURST_INTERNAL_TABLE_H
#define BURST_INTERNAL_TABLE_H

// A table is written as a list of functions, F(result, name, (parameters)), of
// which these make its members and the names that the library is asked for.
#define BURST_TABLE_MEMBER(result, name, parameters) result(*name) parameters;
#define BURST_TABLE_NAME(result, name, parameters) #name,

#endif // BURST_INTERNAL_TABLE_H
