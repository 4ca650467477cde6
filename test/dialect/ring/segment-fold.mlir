// RUN: burst-opt %s --canonicalize -split-input-file | FileCheck %s

// What is constant folds: begin, end, count, step, block.

// CHECK-LABEL: func @zigzag
// CHECK-DAG: %[[BEGIN:.*]] = arith.constant 48 : index
// CHECK-DAG: %[[END:.*]] = arith.constant 52 : index
// CHECK-DAG: %[[COUNT:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : index
// CHECK: return %[[BEGIN]], %[[END]], %[[COUNT]], %[[ONE]], %[[ONE]] :
func.func @zigzag() -> (index, index, index, index, index) {
  %s1 = arith.constant 1 : index
  %r = arith.constant 3 : index
  %n = arith.constant 64 : index
  %0:5 = ring.segment %s1 of <zigzag over 8>[%r] extent %n
  return %0#0, %0#1, %0#2, %0#3, %0#4 : index, index, index, index, index
}

// -----

// Rank 1 of 3 holds positions 2, 3, 8, 9 of 10.
//
// CHECK-LABEL: func @striped
// CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : index
// CHECK-DAG: %[[TEN:.*]] = arith.constant 10 : index
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[SIX:.*]] = arith.constant 6 : index
// CHECK: return %[[TWO]], %[[TEN]], %[[FOUR]], %[[SIX]], %[[TWO]] :
func.func @striped() -> (index, index, index, index, index) {
  %s0 = arith.constant 0 : index
  %r = arith.constant 1 : index
  %n = arith.constant 10 : index
  %0:5 = ring.segment %s0 of <striped 2 over 3>[%r] extent %n
  return %0#0, %0#1, %0#2, %0#3, %0#4 : index, index, index, index, index
}

// -----

// Of all shards, one behind the other, segment 7 is the second of part 3.
//
// CHECK-LABEL: func @all
// CHECK-DAG: %[[BEGIN:.*]] = arith.constant 64 : index
// CHECK-DAG: %[[END:.*]] = arith.constant 80 : index
// CHECK: return %[[BEGIN]], %[[END]]
func.func @all() -> (index, index) {
  %s7 = arith.constant 7 : index
  %r = arith.constant 0 : index
  %n = arith.constant 128 : index
  %0:5 = ring.segment %s7 of <zigzag over 4, all>[%r] extent %n
  return %0#0, %0#1 : index, index
}

// -----

// An empty segment ends where it begins.
//
// CHECK-LABEL: func @empty
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: return %[[ZERO]], %[[ZERO]], %[[ZERO]] :
func.func @empty() -> (index, index, index) {
  %s0 = arith.constant 0 : index
  %r = arith.constant 0 : index
  %n = arith.constant 3 : index
  %0:5 = ring.segment %s0 of <contiguous over 8>[%r] extent %n
  return %0#0, %0#1, %0#2 : index, index, index
}

// -----

// A segment that is not known.
//
// CHECK-LABEL: func @unknown
// CHECK: ring.segment
func.func @unknown(%i: index) -> index {
  %r = arith.constant 3 : index
  %n = arith.constant 64 : index
  %0:5 = ring.segment %i of <zigzag over 8>[%r] extent %n
  return %0#0 : index
}

// -----

// No such rank, no such size.
//
// CHECK-LABEL: func @nowhere
// CHECK-COUNT-4: ring.segment
func.func @nowhere() -> (index, index, index, index) {
  %s0 = arith.constant 0 : index
  %less = arith.constant -1 : index
  %r = arith.constant 7 : index
  %ranks = arith.constant 8 : index
  %n = arith.constant 64 : index
  %huge = arith.constant 9223372036854775807 : index
  %0:5 = ring.segment %s0 of <contiguous over 8>[%less] extent %n
  %1:5 = ring.segment %s0 of <striped 64 over 8>[%ranks] extent %n
  %2:5 = ring.segment %s0 of <zigzag over 8>[%r] extent %less
  %3:5 = ring.segment %s0 of <zigzag over 8>[%r] extent %huge
  return %0#0, %1#0, %2#0, %3#0 : index, index, index, index
}
