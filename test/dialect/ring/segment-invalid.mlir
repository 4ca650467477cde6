// RUN: burst-opt %s -verify-diagnostics -split-input-file

func.func @segment_c1(%r: index, %n: index) {
  %s2 = arith.constant 2 : index
  // expected-error @below {{index must be in [0, 2) for #ring.layout<zigzag over 8>, got: 2}}
  %0:5 = ring.segment %s2 of <zigzag over 8>[%r] extent %n
  return
}

// -----

func.func @segment_c1(%r: index, %n: index) {
  %sm1 = arith.constant -1 : index
  // expected-error @below {{index must be in [0, 2) for #ring.layout<zigzag over 8>, got: -1}}
  %0:5 = ring.segment %sm1 of <zigzag over 8>[%r] extent %n
  return
}

// -----

func.func @segment_c1(%r: index, %n: index) {
  %s1 = arith.constant 1 : index
  // expected-error @below {{index must be in [0, 1) for #ring.layout<contiguous over 8>, got: 1}}
  %0:5 = ring.segment %s1 of <contiguous over 8>[%r] extent %n
  return
}

// -----

func.func @segment_c1(%r: index, %n: index) {
  %s9223372036854775807 = arith.constant 9223372036854775807 : index
  // expected-error @below {{index must be in [0, 1) for #ring.layout<striped 2 over 8>, got: 9223372036854775807}}
  %0:5 = ring.segment %s9223372036854775807 of <striped 2 over 8>[%r] extent %n
  return
}

// -----

func.func @syntax(%r: index, %n: index) {
  %s0 = arith.constant 0 : index
  // expected-error @below {{expected 'over'}}
  %0:5 = ring.segment %s0 of <zigzag>[%r] extent %n
  return
}

// -----

func.func @generic(%r: index) {
  // expected-error @below {{requires attribute 'layout'}}
  %0:5 = "ring.segment"(%r, %r, %r) : (index, index, index) -> (index, index, index, index, index)
  return
}

// -----

func.func @generic(%r: index) {
  // expected-error @below {{expected 3 operands, but found 2}}
  %0:5 = "ring.segment"(%r, %r) <{layout = #ring.layout<zigzag over 2>}> : (index, index) -> (index, index, index, index, index)
  return
}

// -----

func.func @generic(%r: index) {
  // expected-error @below {{expected 5 results}}
  %0 = "ring.segment"(%r, %r, %r) <{layout = #ring.layout<zigzag over 2>}> : (index, index, index) -> index
  return
}
