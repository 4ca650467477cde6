// RUN: split-file %s %t
// RUN: burst-opt %t/full.mlir --burst-to-ring --ring-plan | FileCheck %t/full.mlir
// RUN: burst-opt %t/dynamic.mlir --burst-to-ring --ring-plan="extents=6,12 batch=2" | FileCheck %t/dynamic.mlir
// RUN: burst-opt %t/dynamic.mlir --burst-to-ring --ring-plan="extents=0,0 batch=0" | FileCheck %t/dynamic.mlir --check-prefix=NOTHING
// RUN: burst-opt %t/programs.mlir --burst-to-ring --ring-plan | FileCheck %t/programs.mlir
// RUN: burst-opt %t/programs.mlir --burst-to-ring --ring-plan -o - | FileCheck %t/programs.mlir --check-prefix=MODULE

// What cannot be planned.
//
// RUN: not burst-opt %t/dynamic.mlir --burst-to-ring --ring-plan 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: has 2 dynamic sequence lengths, got extents: 0
// RUN: not burst-opt %t/dynamic.mlir --burst-to-ring --ring-plan=extents=6,12,18 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: error: has 2 dynamic sequence lengths, got extents: 3
// RUN: not burst-opt %t/dynamic.mlir --burst-to-ring --ring-plan=extents=-1,12 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// NEGATIVE: error: needs sequence lengths in [0, 2^40), got: -1
// RUN: not burst-opt %t/dynamic.mlir --burst-to-ring --ring-plan=extents=1099511627776,12 2>&1 | FileCheck %s --check-prefix=HUGE
// HUGE: error: needs sequence lengths in [0, 2^40), got: 1099511627776
// RUN: not burst-opt %t/dynamic.mlir --burst-to-ring --ring-plan="extents=6,12 batch=-1" 2>&1 | FileCheck %s --check-prefix=BATCH
// BATCH: error: needs a batch size in [0, 2^40), got: -1
// RUN: not burst-opt %t/full.mlir --burst-to-ring --ring-plan=batch=2 2>&1 | FileCheck %s --check-prefix=STATIC
// STATIC: error: has no dynamic batch size, got batch: 2; leave batch out
// RUN: not burst-opt %t/dynamic.mlir --burst-to-ring --ring-plan="extents=1099511627775,1099511627775 batch=1099511627775" 2>&1 | FileCheck %s --check-prefix=LARGE
// LARGE: error: argument 0 is too large
// RUN: not burst-opt %t/captured.mlir --burst-to-ring --ring-plan 2>&1 | FileCheck %s --check-prefix=CAPTURED
// CAPTURED: error: argument 1 is captured {{.*}}known at run time only

// The full mask has a closed form. Each of P = 2 ranks sends its slice P - 1
// times: 2 * 6 * 2 * (16 + 8) elements of 2 bytes, 1152 bytes. It holds
//
//   q 1024, k 768, v 384, the state 1024 + 2 * 128, a received slice 1152,
//
// and the result, which is of another type than the state, 512.
//
//--- full.mlir
// CHECK:      {
// CHECK-NEXT:   "per_rank": [
// CHECK-NEXT:     {
// CHECK-NEXT:       "bytes_sent": 1152,
// CHECK-NEXT:       "bytes_sent_by_tensor": {
// CHECK-NEXT:         "arg2": 384,
// CHECK-NEXT:         "k": 768
// CHECK-NEXT:       },
// CHECK-NEXT:       "hops": 1,
// CHECK-NEXT:       "messages": 1,
// CHECK-NEXT:       "peak_bytes": 5120,
// CHECK-NEXT:       "peak_slices": 1,
// CHECK-NEXT:       "rank": 0
// CHECK-NEXT:     },
// CHECK-NEXT:     {
// CHECK-NEXT:       "bytes_sent": 1152,
// CHECK-NEXT:       "bytes_sent_by_tensor": {
// CHECK-NEXT:         "arg2": 384,
// CHECK-NEXT:         "k": 768
// CHECK-NEXT:       },
// CHECK-NEXT:       "hops": 1,
// CHECK-NEXT:       "messages": 1,
// CHECK-NEXT:       "peak_bytes": 5120,
// CHECK-NEXT:       "peak_slices": 1,
// CHECK-NEXT:       "rank": 1
// CHECK-NEXT:     }
// CHECK-NEXT:   ],
// CHECK-NEXT:   "program": "full",
// CHECK-NEXT:   "ranks": 2
// CHECK-NEXT: }
// CHECK-NOT: {{.}}
shard.grid @cp(shape = 2)

func.func @full(%q: tensor<2x8x4x16xbf16> {burst.name = "q"},
                %k: tensor<2x12x2x16xbf16> {burst.name = "k"},
                %v: tensor<2x12x2x8xbf16>)
    -> (tensor<2x8x4x8xbf16>, tensor<2x4x8xf32>) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> strategy <ring_kv>
      : (tensor<2x8x4x16xbf16>, tensor<2x12x2x16xbf16>, tensor<2x12x2x8xbf16>)
      -> (tensor<2x8x4x8xbf16>, tensor<2x4x8xf32>)
  return %o, %lse : tensor<2x8x4x8xbf16>, tensor<2x4x8xf32>
}

// Sizes in the order of the program's arguments: 6 queries, 12 keys. Of a slice,
// 2 * 4 * 12 elements of 4 bytes travel; the last one is not needed by rank 0, so
// going down it takes one hop, the others take two.
//
//--- dynamic.mlir
// CHECK: "bytes_sent": 768,
// CHECK: "bytes_sent": 384,
// CHECK: "bytes_sent": 768,
// CHECK: "program": "dynamic",
// CHECK: "ranks": 3
// NOTHING-COUNT-3: "bytes_sent": 0,
shard.grid @cp(shape = 3)

func.func @dynamic(%v: tensor<?x?x1x8xf32>, %q: tensor<?x?x1x4xf32>,
                   %k: tensor<?x?x1x4xf32>) -> tensor<?x?x1x8xf32> {
  %o, %lse = burst.attention %q, %k, %v mask causal sequence <@cp, contiguous> strategy <ring_kv>
      : (tensor<?x?x1x4xf32>, tensor<?x?x1x4xf32>, tensor<?x?x1x8xf32>)
      -> (tensor<?x?x1x8xf32>, tensor<?x1x?xf32>)
  return %o : tensor<?x?x1x8xf32>
}

// One object per program; other functions have none. Where an output is asked
// for, the module is printed too.
//
//--- programs.mlir
// CHECK: "program": "a",
// CHECK: "program": "b",
// CHECK-NOT: module
// MODULE: "program": "b",
// MODULE: module {
shard.grid @cp(shape = 1)

func.func @a(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> strategy <ring_kv>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x8x1x4xf32>
}

func.func @other(%q: tensor<1x8x1x4xf32>) {
  return
}

func.func @b(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag> strategy <ring_kv>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x8x1x4xf32>
}

//--- captured.mlir
shard.grid @cp(shape = 2)

func.func @captured(%q: tensor<1x8x1x4xf32>, %ids: tensor<8xi32>) -> tensor<1x8x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q mask documents(%ids : tensor<8xi32>)
      sequence <@cp, zigzag> strategy <ring_kv>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x8x1x4xf32>
}
