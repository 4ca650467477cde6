// RUN: burst-opt %s -verify-diagnostics -split-input-file

func.func @take_heads_c1(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{takes one of 2 chunks, from 0 on, got: 2}}
  %0 = ring.take_heads %q chunk 2 of 2 : tensor<1x8x4x16xf32> -> tensor<1x8x2x16xf32>
  return
}

// -----

func.func @take_heads_c1(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{takes one of 2 chunks, from 0 on, got: -1}}
  %0 = ring.take_heads %q chunk -1 of 2 : tensor<1x8x4x16xf32> -> tensor<1x8x2x16xf32>
  return
}

// -----

func.func @take_heads_c1(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{has 2 to 64 chunks of heads, got: 1}}
  %0 = ring.take_heads %q chunk 0 of 1 : tensor<1x8x4x16xf32> -> tensor<1x8x4x16xf32>
  return
}

// -----

func.func @take_heads_c1(%q: tensor<1x8x65x16xf32>) {
  // expected-error @below {{has 2 to 64 chunks of heads, got: 65}}
  %0 = ring.take_heads %q chunk 0 of 65 : tensor<1x8x65x16xf32> -> tensor<1x8x1x16xf32>
  return
}

// -----

func.func @take_heads_c2(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{needs a static number of heads that 3 chunks divide, got: 'tensor<1x8x4x16xf32>'}}
  %0 = ring.take_heads %q chunk 0 of 3 : tensor<1x8x4x16xf32> -> tensor<1x8x1x16xf32>
  return
}

// -----

func.func @take_heads_c2(%q: tensor<1x8x?x16xf32>) {
  // expected-error @below {{needs a static number of heads that 2 chunks divide, got: 'tensor<1x8x?x16xf32>'}}
  %0 = ring.take_heads %q chunk 0 of 2 : tensor<1x8x?x16xf32> -> tensor<1x8x?x16xf32>
  return
}

// -----

func.func @take_heads_c2(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{has chunks of 2 heads of 'tensor<1x8x4x16xf32>', got: 'tensor<1x4x2x16xf32>'}}
  %0 = ring.take_heads %q chunk 0 of 2 : tensor<1x8x4x16xf32> -> tensor<1x4x2x16xf32>
  return
}

// -----

func.func @take_heads_c2(%q: tensor<1x8x4x16xf32>) {
  // expected-error @below {{has chunks of 2 heads of 'tensor<1x8x4x16xf32>', got: 'tensor<1x8x2x16xbf16>'}}
  %0 = ring.take_heads %q chunk 0 of 2 : tensor<1x8x4x16xf32> -> tensor<1x8x2x16xbf16>
  return
}

// -----

func.func @join_heads_c1(%a: tensor<1x8x2x16xf32>, %b: tensor<1x8x4x16xf32>) {
  // expected-error @below {{joins chunks of one type, got: 'tensor<1x8x4x16xf32>' and 'tensor<1x8x2x16xf32>'}}
  %0 = ring.join_heads %a, %b : tensor<1x8x2x16xf32>, tensor<1x8x4x16xf32> -> tensor<1x8x6x16xf32>
  return
}

// -----

func.func @join_heads_c1(%a: tensor<1x8x2x16xf32>) {
  // expected-error @below {{has 2 to 64 chunks of heads, got: 1}}
  %0 = ring.join_heads %a : tensor<1x8x2x16xf32> -> tensor<1x8x2x16xf32>
  return
}

// -----

func.func @join_heads_c1() {
  // expected-error @below {{has 2 to 64 chunks of heads, got: 0}}
  %0 = "ring.join_heads"() : () -> tensor<1x8x2x16xf32>
  return
}

// -----

func.func @join_heads_c1(%a: tensor<1x8x2x16xf32>) {
  // expected-error @below {{has chunks of 4 heads of 'tensor<1x8x8x16xf32>', got: 'tensor<1x8x2x16xf32>'}}
  %0 = ring.join_heads %a, %a : tensor<1x8x2x16xf32>, tensor<1x8x2x16xf32> -> tensor<1x8x8x16xf32>
  return
}

// -----

// expected-error @below {{'ring.head_chunks' of a function must be from 2 to 64, got: 1 : i64}}
func.func private @one() attributes {ring.head_chunks = 1 : i64}

// -----

// expected-error @below {{'ring.head_chunks' of a function must be from 2 to 64, got: "many"}}
func.func private @many() attributes {ring.head_chunks = "many"}

// -----

func.func @sum_chunks_c1(%a: tensor<8xf32>) {
  // expected-error @below {{adds 2 to 64 gradients, got: 1}}
  %0 = ring.sum_chunks %a : tensor<8xf32>
  return
}
