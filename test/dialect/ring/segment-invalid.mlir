// RUN: burst-opt %s -verify-diagnostics -split-input-file

func.func @segment_c1(%r: index, %n: index) {
  // expected-error @below {{index must be in [0, 2) for #ring.layout<zigzag over 8>, got: 2}}
  %0:5 = ring.segment 2 of <zigzag over 8>[%r] extent %n
  return
}

// -----

func.func @segment_c1(%r: index, %n: index) {
  // expected-error @below {{index must be in [0, 2) for #ring.layout<zigzag over 8>, got: -1}}
  %0:5 = ring.segment -1 of <zigzag over 8>[%r] extent %n
  return
}

// -----

func.func @segment_c1(%r: index, %n: index) {
  // expected-error @below {{index must be in [0, 1) for #ring.layout<contiguous over 8>, got: 1}}
  %0:5 = ring.segment 1 of <contiguous over 8>[%r] extent %n
  return
}

// -----

func.func @segment_c1(%r: index, %n: index) {
  // expected-error @below {{index must be in [0, 1) for #ring.layout<striped 2 over 8>, got: 9223372036854775807}}
  %0:5 = ring.segment 9223372036854775807 of <striped 2 over 8>[%r] extent %n
  return
}

// -----

func.func @syntax(%r: index, %n: index) {
  // expected-error @below {{integer constant out of range for attribute}}
  %0:5 = ring.segment 99999999999999999999 of <zigzag over 8>[%r] extent %n
  return
}

// -----

func.func @syntax(%r: index, %n: index) {
  // expected-error @below {{expected 'over'}}
  %0:5 = ring.segment 0 of <zigzag>[%r] extent %n
  return
}

// -----

func.func @generic(%r: index) {
  // expected-error @below {{requires attribute 'layout'}}
  %0:5 = "ring.segment"(%r, %r) <{index = 0 : i64}> : (index, index) -> (index, index, index, index, index)
  return
}

// -----

func.func @generic(%r: index) {
  // expected-error @below {{attribute 'index' failed to satisfy constraint: 64-bit signless integer attribute}}
  %0:5 = "ring.segment"(%r, %r) <{index = 0 : i32, layout = #ring.layout<zigzag over 2>}> : (index, index) -> (index, index, index, index, index)
  return
}

// -----

func.func @generic(%r: index) {
  // expected-error @below {{expected 5 results}}
  %0 = "ring.segment"(%r, %r) <{index = 0 : i64, layout = #ring.layout<zigzag over 2>}> : (index, index) -> index
  return
}
