// RUN: burst-opt %s --burst-to-ring | FileCheck %s --check-prefixes=CHECK,BOTH
// RUN: burst-opt %s --burst-to-ring="drop=true overlap=true" | FileCheck %s --check-prefixes=CHECK,BOTH
// RUN: burst-opt %s --burst-to-ring="drop=false" | FileCheck %s --check-prefixes=CHECK,OVERLAP
// RUN: burst-opt %s --burst-to-ring="overlap=false" | FileCheck %s --check-prefixes=CHECK,DROP
// RUN: burst-opt %s --burst-to-ring="drop=false overlap=false" | FileCheck %s --check-prefixes=CHECK,NEITHER

// The pipeline, with and without its optimisations. In each form the schedule is
// proved.

// What is needed is computed once, and read for the reach of slices.
//
// BOTH: func private @f_needs
// BOTH: %[[NEED:.*]] = tensor.generate
// BOTH: scf.for
// BOTH: tensor.extract %[[NEED]]
// BOTH: return %[[NEED]],
// DROP: func private @f_needs
// OVERLAP-NOT: @f_needs
// NEITHER-NOT: @f_needs
// CHECK-LABEL: func @f(
// CHECK-NOT: burst.{{attention|shard|unshard}}

// BOTH: scf.for
// BOTH: ring.start {{.*}} segments(
// BOTH: ring.attend
// BOTH: pairs(
// BOTH: ring.wait

// DROP: scf.for
// DROP: ring.attend
// DROP: pairs(
// DROP: ring.start {{.*}} segments(
// DROP: ring.wait

// OVERLAP: scf.for
// OVERLAP: ring.start
// OVERLAP-NOT: segments
// OVERLAP: ring.attend
// OVERLAP-NOT: pairs
// OVERLAP: ring.wait

// NEITHER: scf.for
// NEITHER: ring.attend
// NEITHER-NOT: pairs
// NEITHER: ring.start
// NEITHER-NOT: segments
// NEITHER: ring.wait

// CHECK: ring.finalize
shard.grid @cp(shape = 4)

func.func @f(%q: tensor<1x16x2x4xf32>, %ids: tensor<16xi32>) -> tensor<1x16x2x4xf32> {
  %o, %lse = burst.attention %q, %q, %q mask causal score softcap<20.0>
      sequence <@cp, zigzag> strategy <ring_kv>
      : (tensor<1x16x2x4xf32>, tensor<1x16x2x4xf32>, tensor<1x16x2x4xf32>)
      -> (tensor<1x16x2x4xf32>, tensor<1x2x16xf32>)
  return %o : tensor<1x16x2x4xf32>
}
