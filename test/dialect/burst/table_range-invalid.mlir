// RUN: burst-opt %s -verify-diagnostics -split-input-file

func.func @table_range_c1(%t: tensor<8xf32>, %i: index) {
  // expected-error @below {{needs a table of index or of integers of 1 to 64 bits, got: 'tensor<8xf32>'}}
  %min, %max = burst.table_range %t[%i to %i] : tensor<8xf32>
  return
}

// -----

func.func @table_range_c1(%t: tensor<8xi65>, %i: index) {
  // expected-error @below {{needs a table of index or of integers of 1 to 64 bits, got: 'tensor<8xi65>'}}
  %min, %max = burst.table_range %t[%i to %i] : tensor<8xi65>
  return
}

// -----

func.func @table_range_c1(%t: tensor<8xi0>, %i: index) {
  // expected-error @below {{needs a table of index or of integers of 1 to 64 bits, got: 'tensor<8xi0>'}}
  %min, %max = burst.table_range %t[%i to %i] : tensor<8xi0>
  return
}

// -----

func.func @table_range_c1(%t: tensor<8xui8>, %i: index) {
  // expected-error @below {{needs a table of index or of integers of 1 to 64 bits, got: 'tensor<8xui8>'}}
  %min, %max = burst.table_range %t[%i to %i] : tensor<8xui8>
  return
}

// -----

// Too few and too many indices, on either side.
func.func @table_range_c1(%t: tensor<8x8xi32>, %i: index) {
  // expected-error @below {{needs an index range per dimension of 'tensor<8x8xi32>', got: 1}}
  %min, %max = burst.table_range %t[%i to %i] : tensor<8x8xi32>
  return
}

// -----

func.func @table_range_c1(%t: tensor<8x8xi32>, %i: index) {
  // expected-error @below {{needs an index range per dimension of 'tensor<8x8xi32>', got: 1}}
  %min, %max = burst.table_range %t[%i, %i to %i] : tensor<8x8xi32>
  return
}

// -----

func.func @table_range_c1(%t: tensor<8xi32>, %i: index) {
  // expected-error @below {{needs an index range per dimension of 'tensor<8xi32>', got: 2}}
  %min, %max = burst.table_range %t[%i, %i to %i] : tensor<8xi32>
  return
}

// -----

func.func @table_range_c1(%t: tensor<8xi32>, %i: index) {
  // expected-error @below {{needs an index range per dimension of 'tensor<8xi32>', got: 2}}
  %min, %max = burst.table_range %t[%i to %i, %i] : tensor<8xi32>
  return
}

// -----

func.func @table_range_c1(%t: tensor<8xi32>, %i: index) {
  // expected-error @below {{needs an index range per dimension of 'tensor<8xi32>', got: 2}}
  %min, %max = burst.table_range %t[%i, %i to] : tensor<8xi32>
  return
}

// -----

func.func @table_range_c1(%t: tensor<8xi32>, %i: index) {
  // expected-error @below {{needs an index range per dimension of 'tensor<8xi32>', got: 0}}
  %min, %max = burst.table_range %t[to] : tensor<8xi32>
  return
}

// -----

func.func @syntax(%t: tensor<*xi32>, %i: index) {
  // expected-error @below {{operand #0 must be ranked tensor of any type values or memref of any type values, but got 'tensor<*xi32>'}}
  %min, %max = burst.table_range %t[%i to %i] : tensor<*xi32>
  return
}

// -----

func.func @syntax(%t: tensor<8xi32>, %i: index) {
  // expected-error @below {{expected 'to'}}
  %min, %max = burst.table_range %t[%i, %i] : tensor<8xi32>
  return
}

// -----

func.func @generic(%t: tensor<8xi32>, %i: index) {
  // expected-error @below {{expected 1 or more operands, but found 0}}
  %min, %max = "burst.table_range"() <{operandSegmentSizes = array<i32: 0, 0, 0>}> : () -> (i64, i64)
  return
}

// -----

func.func @generic(%t: tensor<8xi32>, %i: index) {
  // expected-error @below {{operand segment 0 must have one operand, got: 0}}
  %min, %max = "burst.table_range"(%i, %i, %i) <{operandSegmentSizes = array<i32: 0, 2, 1>}> : (index, index, index) -> (i64, i64)
  return
}

// -----

func.func @generic(%t: tensor<8xi32>, %i: index) {
  // expected-error @below {{operand count (4) does not match with the total size (3)}}
  %min, %max = "burst.table_range"(%t, %i, %i, %i) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<8xi32>, index, index, index) -> (i64, i64)
  return
}

// -----

func.func @generic(%t: tensor<8xi32>, %i: index) {
  // expected-error @below {{needs an index range per dimension of 'tensor<8xi32>', got: 2}}
  %min, %max = "burst.table_range"(%t, %i, %i) <{operandSegmentSizes = array<i32: 1, 2, 0>}> : (tensor<8xi32>, index, index) -> (i64, i64)
  return
}

// -----

func.func @generic(%t: tensor<8xi32>, %i: index) {
  // expected-error @below {{operand #1 must be variadic of index, but got 'tensor<8xi32>'}}
  %min, %max = "burst.table_range"(%t, %t, %i) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<8xi32>, tensor<8xi32>, index) -> (i64, i64)
  return
}

// -----

func.func @generic(%t: tensor<8xi32>, %i: index) {
  // expected-error @below {{result #1 must be 64-bit signless integer, but got 'i32'}}
  %min, %max = "burst.table_range"(%t, %i, %i) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<8xi32>, index, index) -> (i64, i32)
  return
}
