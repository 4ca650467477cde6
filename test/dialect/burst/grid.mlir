// RUN: burst-opt %s | burst-opt | FileCheck %s

shard.grid @mesh(shape = 2x4x3)

// Each clause has axes of its own; several count as one.
//
// CHECK-LABEL: func @each
// CHECK: burst.attention %{{.*}} mask causal sequence <@mesh[1], zigzag> heads <@mesh[0]> batch <@mesh[2]> strategy <ring_kv> :
func.func @each(%q: tensor<3x512x4x64xf32>, %k: tensor<3x512x2x64xf32>)
    -> tensor<3x512x4x64xf32> {
  %o, %lse = burst.attention %q, %k, %k mask causal
      sequence <@mesh[1], zigzag> heads <@mesh[0]> batch <@mesh[2]>
      strategy <ring_kv>
      : (tensor<3x512x4x64xf32>, tensor<3x512x2x64xf32>, tensor<3x512x2x64xf32>)
      -> (tensor<3x512x4x64xf32>, tensor<3x4x512xf32>)
  return %o : tensor<3x512x4x64xf32>
}

// CHECK-LABEL: func @several
// CHECK: burst.attention %{{.*}} sequence <@mesh[1, 2], striped 4> heads <@mesh[0]> :
func.func @several(%q: tensor<1x512x4x64xf32>, %k: tensor<1x512x2x64xf32>)
    -> tensor<1x512x4x64xf32> {
  %o, %lse = burst.attention %q, %k, %k
      sequence <@mesh[1, 2], striped 4> heads <@mesh[0]>
      : (tensor<1x512x4x64xf32>, tensor<1x512x2x64xf32>, tensor<1x512x2x64xf32>)
      -> (tensor<1x512x4x64xf32>, tensor<1x4x512xf32>)
  return %o : tensor<1x512x4x64xf32>
}

// CHECK: attributes {a = #burst.axes<@mesh>, b = #burst.axes<@mesh[1, 2]>}
func.func private @axes() attributes {a = #burst.axes<@mesh>, b = #burst.axes<@mesh[1, 2]>}
