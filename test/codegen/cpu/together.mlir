// How much is computed together is up to the target.
//
// DEFINE: %{options} = micro-vectors=1
// DEFINE: %{lower} = burst-opt %s --pass-pipeline='builtin.module(func.func(tile-to-vector{vector-bits=128 micro-rows=1 %{options}}))'
// DEFINE: %{check} = %{lower} | FileCheck %s --check-prefix
// RUN: %{check} TWO
// REDEFINE: %{options} = micro-vectors=1 steps=1 maxima=1 exponentials=1 weights=1
// RUN: %{check} ONE
// REDEFINE: %{options} = micro-vectors=1 steps=4 maxima=4 exponentials=4 weights=8
// RUN: %{check} FOUR
// REDEFINE: %{options} = exponentials=0
// RUN: not %{lower} 2>&1 | FileCheck %s --check-prefix=NONE
// REDEFINE: %{options} = micro-vectors=0
// RUN: not %{lower} 2>&1 | FileCheck %s --check-prefix=NARROW
// NARROW: error: vectors have a power of two of bits, from 64 to 2048, and register tiles 1 to 64 rows and vectors, got: 128, 1 and 0
// REDEFINE: %{options} = maxima=4611686018427387904
// RUN: not %{lower} 2>&1 | FileCheck %s --check-prefix=MANY
// MANY: error: 1 to 64 are computed together, got steps, maxima, exponentials and weights: 2, 4611686018427387904, 2 and 4
// REDEFINE: %{options} = micro-vectors=2 steps=1 panel-bytes=16
// RUN: %{check} ABREAST
// NONE: error: 1 to 64 are computed together, got steps, maxima, exponentials and weights: 2, 4, 0 and 4

// Steps of a depth of 6; where 4 at a time do not divide it, 2 do.
// ONE-LABEL: @multiply
// ONE: scf.for {{.*}} iter_args
// ONE-COUNT-1: vector.fma
// ONE-NOT: vector.fma
// ONE: scf.yield
// TWO-LABEL: @multiply
// TWO: scf.for {{.*}} iter_args
// TWO-COUNT-2: vector.fma
// TWO-NOT: vector.fma
// TWO: scf.yield
// FOUR-LABEL: @multiply
// FOUR: scf.for {{.*}} iter_args
// FOUR-COUNT-2: vector.fma
// FOUR-NOT: vector.fma
// FOUR: scf.yield
func.func private @multiply(%task: index, %q: memref<8x6xf32>, %k: memref<4x6x4xf32>, %s: memref<8x16xf32>, %n: index)
    attributes {tile.kernel} {
  tile.multiply %q, %k, %s rows %n : memref<8x6xf32>, memref<4x6x4xf32>, memref<8x16xf32>
  return
}

// Two panels abreast, then, of any number of them, the last alone.
// ABREAST-LABEL: @panels
// ABREAST: scf.for {{.*}} -> (vector<4xf32>, vector<4xf32>)
// ABREAST-COUNT-2: vector.fma
// ABREAST: scf.for {{.*}} iter_args({{[^,]*}}) -> (vector<4xf32>)
// ABREAST-COUNT-1: vector.fma
// ABREAST-NOT: vector.fma
// ABREAST: return
func.func private @panels(%task: index, %q: memref<1x6xf32>, %k: memref<?x6x4xf32>, %s: memref<1x?xf32, strided<[16, 1]>>, %n: index)
    attributes {tile.kernel} {
  tile.multiply %q, %k, %s rows %n : memref<1x6xf32>, memref<?x6x4xf32>, memref<1x?xf32, strided<[16, 1]>>
  return
}

// Of any number of vectors, the rest one by one.
// ABREAST-LABEL: @rest
// ABREAST: %[[PARTS:.*]]:4 = scf.for {{.*}} -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>)
// ABREAST: %[[LAST:.*]] = scf.for {{.*}} iter_args(%{{.*}} = %[[PARTS]]#0) -> (vector<4xf32>)
// ABREAST: arith.cmpf ogt, %[[LAST]], %[[PARTS]]#1
func.func private @rest(%task: index, %s: memref<8x?xf32, strided<[16, 1]>>, %m: memref<8xf32>, %a: memref<8xf32>, %n: index)
    attributes {tile.kernel} {
  tile.row_max %s, %m, %a rows %n : memref<8x?xf32, strided<[16, 1]>>, memref<8xf32>
  return
}

// ONE-LABEL: @maxima
// ONE: scf.for {{.*}} iter_args({{[^,]*}}) -> (vector<4xf32>)
// TWO-LABEL: @maxima
// TWO: scf.for {{.*}} -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>)
// FOUR-LABEL: @maxima
// FOUR: scf.for {{.*}} -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>)
func.func private @maxima(%task: index, %s: memref<8x16xf32>, %m: memref<8xf32>, %a: memref<8xf32>, %n: index)
    attributes {tile.kernel} {
  tile.row_max %s, %m, %a rows %n : memref<8x16xf32>, memref<8xf32>
  return
}

// As many sums as vectors.
// ONE-LABEL: @exponentials
// ONE: scf.for {{.*}} iter_args({{[^,]*}}) -> (vector<4xf32>)
// TWO-LABEL: @exponentials
// TWO: scf.for {{.*}} -> (vector<4xf32>, vector<4xf32>)
// FOUR-LABEL: @exponentials
// FOUR: scf.for {{.*}} -> (vector<4xf32>, vector<4xf32>, vector<4xf32>, vector<4xf32>)
func.func private @exponentials(%task: index, %s: memref<8x16xf32>, %m: memref<8xf32>, %l: memref<8xf32>, %a: memref<8xf32>, %n: index)
    attributes {tile.kernel} {
  tile.exponentials %s, %m, %l, %a rows %n : memref<8x16xf32>, memref<8xf32>
  return
}

// A row of 4 vectors: 8 at a time would be more.
// ONE-LABEL: @weights
// ONE-COUNT-1: vector.store
// ONE-NOT: vector.store
// ONE: return
// TWO-LABEL: @weights
// TWO-COUNT-4: vector.store
// TWO-NOT: vector.store
// TWO: return
// FOUR-LABEL: @weights
// FOUR-COUNT-4: vector.store
// FOUR-NOT: vector.store
// FOUR: return
func.func private @weights(%task: index, %s: memref<8x16xf32>, %l: memref<8xf32>, %n: index)
    attributes {tile.kernel} {
  tile.weights %s, %l rows %n : memref<8x16xf32>, memref<8xf32>
  return
}
