//===- GatherQueries.h - a strategy of tests --------------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef BURST_TEST_UNIT_PROPERTY_GATHERQUERIES_H
#define BURST_TEST_UNIT_PROPERTY_GATHERQUERIES_H

namespace burst::test {

/// Adds `test_gather_q`, once: each rank gathers queries, and their states are
/// merged by their owners. It is pinned and never chosen.
void addGatherQueries();

} // namespace burst::test

#endif // BURST_TEST_UNIT_PROPERTY_GATHERQUERIES_H
