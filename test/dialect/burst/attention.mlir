// RUN: burst-opt %s | burst-opt | FileCheck %s
// RUN: burst-opt %s --mlir-print-op-generic | burst-opt | FileCheck %s

shard.grid @cp(shape = 4)

// CHECK-LABEL: func @plain
// CHECK-SAME: (%[[Q:.*]]: tensor<1x8x4x64xf32>, %[[K:.*]]: tensor<1x16x2x64xf32>, %[[V:.*]]: tensor<1x16x2x32xf32>)
// CHECK: burst.attention %[[Q]], %[[K]], %[[V]] :
// CHECK-SAME: (tensor<1x8x4x64xf32>, tensor<1x16x2x64xf32>, tensor<1x16x2x32xf32>) -> (tensor<1x8x4x32xf32>, tensor<1x4x8xf32>)
func.func @plain(%q: tensor<1x8x4x64xf32>, %k: tensor<1x16x2x64xf32>,
                 %v: tensor<1x16x2x32xf32>) -> tensor<1x8x4x32xf32> {
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<1x8x4x64xf32>, tensor<1x16x2x64xf32>, tensor<1x16x2x32xf32>)
      -> (tensor<1x8x4x32xf32>, tensor<1x4x8xf32>)
  return %o : tensor<1x8x4x32xf32>
}

// The example of the dialect.
//
// CHECK-LABEL: func @llama3
// CHECK: burst.attention {{.*}} mask causal sequence <@cp, zigzag> :
func.func @llama3(%q: tensor<1x16384x32x128xbf16>,
                  %k: tensor<1x16384x8x128xbf16>,
                  %v: tensor<1x16384x8x128xbf16>)
    -> (tensor<1x16384x32x128xbf16>, tensor<1x32x16384xf32>) {
  %o, %lse = burst.attention %q, %k, %v mask causal
      sequence <@cp, zigzag>
      : (tensor<1x16384x32x128xbf16>, tensor<1x16384x8x128xbf16>,
         tensor<1x16384x8x128xbf16>)
      -> (tensor<1x16384x32x128xbf16>, tensor<1x32x16384xf32>)
  return %o, %lse : tensor<1x16384x32x128xbf16>, tensor<1x32x16384xf32>
}

// The example of the op.
//
// CHECK-LABEL: func @example
// CHECK-SAME: %[[IDS:[^ ]+]]: tensor<512xi32>)
// CHECK: burst.attention
// CHECK-NEXT: mask(%b, %h, %i, %j, %sq, %sk, %[[ID:.*]] = %[[IDS]] : tensor<512xi32>) {
// CHECK-NEXT: %[[X:.*]] = tensor.extract %[[ID]][%i] : tensor<512xi32>
// CHECK-NEXT: %[[Y:.*]] = tensor.extract %[[ID]][%j] : tensor<512xi32>
// CHECK-NEXT: %[[SAME:.*]] = arith.cmpi eq, %[[X]], %[[Y]] : i32
// CHECK-NEXT: burst.yield %[[SAME]] : i1
// CHECK-NEXT: } score softcap<3.000000e+01> scale 1.250000e-01 sequence <@cp, striped 64> :
func.func @example(%q: tensor<1x512x4x64xf32>, %k: tensor<1x512x2x64xf32>,
                   %v: tensor<1x512x2x64xf32>, %ids: tensor<512xi32>) {
  %o, %lse = burst.attention %q, %k, %v
      mask(%b, %h, %i, %j, %sq, %sk, %id = %ids : tensor<512xi32>) {
        %x = tensor.extract %id[%i] : tensor<512xi32>
        %y = tensor.extract %id[%j] : tensor<512xi32>
        %same = arith.cmpi eq, %x, %y : i32
        burst.yield %same : i1
      }
      score softcap<30.0>
      scale 0.125
      sequence <@cp, striped 64>
      : (tensor<1x512x4x64xf32>, tensor<1x512x2x64xf32>, tensor<1x512x2x64xf32>)
      -> (tensor<1x512x4x64xf32>, tensor<1x4x512xf32>)
  return
}

// The arguments of regions have names, whatever they were called.
//
// CHECK-LABEL: func @regions
// CHECK-SAME: %[[T:[^ ]+]]: tensor<8xi32>, %[[S:[^ ]+]]: f32)
// CHECK: burst.attention
// CHECK-NEXT: mask(%b, %h, %i, %j, %sq, %sk, %[[C:.*]] = %[[T]] : tensor<8xi32>) {
// CHECK: burst.yield %{{.*}} : i1
// CHECK-NEXT: }
// CHECK-NEXT: score(%s : f32, %b, %h, %i, %j, %sq, %sk, %[[D:.*]] = %[[S]] : f32) {
// CHECK-NEXT: %[[P:.*]] = arith.mulf %s, %[[D]] : f32
// CHECK-NEXT: burst.yield %[[P]] : f32
// CHECK-NEXT: }
// CHECK-NEXT: bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk, %[[E:.*]] : tensor<8xi32>) {
// CHECK: burst.table_range %[[E]][%i0 to %j0] : tensor<8xi32>
// CHECK: tensor.dim %[[E]]
// CHECK: burst.yield %{{.*}}, %{{.*}} : i1, i1
func.func @regions(%q: tensor<1x8x1x4xf32>, %t: tensor<8xi32>, %f: f32) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%a0, %a1, %a2, %a3, %a4, %a5, %a6 = %t : tensor<8xi32>) {
        %x = tensor.extract %a6[%a2] : tensor<8xi32>
        %zero = arith.constant 0 : i32
        %keep = arith.cmpi sgt, %x, %zero : i32
        burst.yield %keep : i1
      }
      score(%a0 : f32, %a1, %a2, %a3, %a4, %a5, %a6, %a7 = %f : f32) {
        %p = arith.mulf %a0, %a7 : f32
        burst.yield %p : f32
      }
      bounds(%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7, %a8, %a9, %a10 : tensor<8xi32>) {
        %min, %max = burst.table_range %a10[%a4 to %a6] : tensor<8xi32>
        %size = tensor.dim %a10, %a0 : tensor<8xi32>
        %true = arith.constant true
        burst.yield %true, %true : i1, i1
      }
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// A score alone; the state type is that of f64.
//
// CHECK-LABEL: func @f64
// CHECK: burst.attention %{{.*}}, %{{.*}}, %{{.*}}
// CHECK-NEXT: score(%s : f64, %b, %h, %i, %j, %sq, %sk) {
// CHECK-NEXT: burst.yield %s : f64
// CHECK: -> (tensor<1x8x1x4xf64>, tensor<1x1x8xf64>)
func.func @f64(%q: tensor<1x8x1x4xf64>) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f64, %b, %h, %i, %j, %sq, %sk) {
        burst.yield %s : f64
      }
      : (tensor<1x8x1x4xf64>, tensor<1x8x1x4xf64>, tensor<1x8x1x4xf64>)
      -> (tensor<1x8x1x4xf64>, tensor<1x1x8xf64>)
  return
}

// CHECK-LABEL: func @f16
// CHECK: burst.attention {{.*}} -> (tensor<1x8x1x4xf16>, tensor<1x1x8xf32>)
func.func @f16(%q: tensor<1x8x1x4xf16>) {
  %o, %lse = burst.attention %q, %q, %q
      : (tensor<1x8x1x4xf16>, tensor<1x8x1x4xf16>, tensor<1x8x1x4xf16>)
      -> (tensor<1x8x1x4xf16>, tensor<1x1x8xf32>)
  return
}

// Batch and sequences may be dynamic, and static in some operands only: results
// say what any of them says.
//
// CHECK-LABEL: func @dynamic
// CHECK: burst.attention
// CHECK-SAME: (tensor<?x?x4x64xf32>, tensor<?x?x2x64xf32>, tensor<2x16x2x64xf32>) -> (tensor<2x?x4x64xf32>, tensor<2x4x?xf32>)
func.func @dynamic(%q: tensor<?x?x4x64xf32>, %k: tensor<?x?x2x64xf32>,
                   %v: tensor<2x16x2x64xf32>) {
  %o, %lse = burst.attention %q, %k, %v
      : (tensor<?x?x4x64xf32>, tensor<?x?x2x64xf32>, tensor<2x16x2x64xf32>)
      -> (tensor<2x?x4x64xf32>, tensor<2x4x?xf32>)
  return
}

// No queries, no keys, no batch; the smallest and the largest head dim.
//
// CHECK-LABEL: func @empty
// CHECK: burst.attention {{.*}} -> (tensor<0x0x1x256xf32>, tensor<0x1x0xf32>)
func.func @empty(%q: tensor<0x0x1x1xf32>, %v: tensor<0x0x1x256xf32>) {
  %o, %lse = burst.attention %q, %q, %v mask causal
      : (tensor<0x0x1x1xf32>, tensor<0x0x1x1xf32>, tensor<0x0x1x256xf32>)
      -> (tensor<0x0x1x256xf32>, tensor<0x1x0xf32>)
  return
}

// CHECK-LABEL: func @largest
// CHECK: tensor<1x1099511627775x1x4xf32>
func.func @largest(%q: tensor<1x1099511627775x1x4xf32>) {
  %o, %lse = burst.attention %q, %q, %q
      : (tensor<1x1099511627775x1x4xf32>, tensor<1x1099511627775x1x4xf32>,
         tensor<1x1099511627775x1x4xf32>)
      -> (tensor<1x1099511627775x1x4xf32>, tensor<1x1x1099511627775xf32>)
  return
}

// Scales other than the default, also odd ones.
//
// CHECK-LABEL: func @scales
// CHECK: scale 0.000000e+00 :
// CHECK: scale -2.500000e+00 :
// CHECK: scale 1.234567890123456{{[0-9]*}} :
func.func @scales(%q: tensor<1x8x1x4xf32>) {
  %0:2 = burst.attention %q, %q, %q scale 0.0
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  %1:2 = burst.attention %q, %q, %q scale -2.5
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  %2:2 = burst.attention %q, %q, %q scale 1.2345678901234567
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// CHECK-LABEL: func @strategies
// CHECK: sequence <@cp, zigzag> strategy <ring_kv> :
// CHECK: strategy <ring_q> :
// CHECK: strategy <all_gather> :
// CHECK: strategy <ulysses> :
// CHECK: strategy <ulysses in 4 chunks> :
// CHECK: strategy <ulysses on [1] in 2 chunks, ring_kv on [0]> :
// CHECK: strategy <ulysses> :
func.func @strategies(%q: tensor<1x8x1x4xf32>) {
  %0:2 = burst.attention %q, %q, %q sequence <@cp, zigzag> strategy <ring_kv>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  %1:2 = burst.attention %q, %q, %q strategy <ring_q>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  %2:2 = burst.attention %q, %q, %q strategy <all_gather>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  %3:2 = burst.attention %q, %q, %q strategy <ulysses>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  %4:2 = burst.attention %q, %q, %q strategy <ulysses in 4 chunks>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  %5:2 = burst.attention %q, %q, %q
      strategy <ulysses on [1] in 2 chunks, ring_kv on [0]>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  %6:2 = burst.attention %q, %q, %q strategy <ulysses in 1 chunks>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// Everything at once, and an attribute of somebody else.
//
// CHECK-LABEL: func @all
// CHECK: mask [causal, documents](%{{.*}}, %{{.*}} : tensor<8xi32>, tensor<8xi32>) score [softcap<3.000000e+01>, alibi](%{{.*}} : tensor<1xf32>) scale 5.000000e-01 sequence <@cp, striped 2> strategy <ring_kv> {note = "mine"} :
func.func @all(%q: tensor<1x8x1x4xf32>, %t: tensor<8xi32>, %s: tensor<1xf32>) {
  %0:2 = burst.attention %q, %q, %q
      mask [causal, documents](%t, %t : tensor<8xi32>, tensor<8xi32>)
      score [softcap<30.0>, alibi](%s : tensor<1xf32>) scale 0.5
      sequence <@cp, striped 2> strategy <ring_kv> {note = "mine"}
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// The generic form; names that are attributes anywhere else keep their dialect.
//
// CHECK-LABEL: func @generic
// CHECK-SAME: attributes {mine = #burst.causal, other = #burst.strategy<ring_kv>}
// CHECK: burst.attention %{{.*}}, %{{.*}}, %{{.*}} mask causal :
func.func @generic(%q: tensor<1x8x1x4xf32>)
    attributes {mine = #burst.causal, other = #burst.strategy<ring_kv>} {
  %o, %lse = "burst.attention"(%q, %q, %q) <{
      operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>,
      maskNames = [#burst.causal]}> ({}, {}, {})
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return
}

// CHECK-LABEL: func @max_scores
// CHECK: %{{.*}}, %{{.*}}, %{{.*}} = burst.attention %{{.*}}, %{{.*}}, %{{.*}} :
// CHECK-SAME: -> (tensor<1x8x4x64xbf16>, tensor<1x4x8xf32>, tensor<1x4x8xf32>)
func.func @max_scores(%q: tensor<1x8x4x64xbf16>) -> tensor<1x4x8xf32> {
  %o, %lse, %max = burst.attention %q, %q, %q
      : (tensor<1x8x4x64xbf16>, tensor<1x8x4x64xbf16>, tensor<1x8x4x64xbf16>)
      -> (tensor<1x8x4x64xbf16>, tensor<1x4x8xf32>, tensor<1x4x8xf32>)
  return %max : tensor<1x4x8xf32>
}
