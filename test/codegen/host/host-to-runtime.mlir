// RUN: burst-opt %s --burst-host-to-runtime --cse | FileCheck %s

// What a program calls stands in a table (burst/program.h): the numbers below are
// those of its members.

// The entry of a kernel unpacks the arguments of a launch.
// CHECK: llvm.mlir.global internal constant @kernel.name("kernel\00")
// CHECK-LABEL: llvm.func internal @kernel.entry(%arg0: !llvm.ptr, %arg1: i64)
// CHECK: %[[TASK:.*]] = arith.index_cast %arg1 : i64 to index
// CHECK: llvm.getelementptr %arg0[0, 3]
// CHECK: func.call @kernel(%[[TASK]], {{.*}}) : (index, memref<8x4xf32>, memref<?x4xf32>, index, i16) -> ()
// CHECK: llvm.mlir.global internal constant @kernel.kernel() {{.*}} !llvm.struct<(ptr, ptr)>
// CHECK: llvm.mlir.addressof @kernel.name
// CHECK: llvm.mlir.addressof @kernel.entry
// The bits of a bf16 travel.
// CHECK: func.func private @kernel({{.*}}: i16)
// CHECK-NOT: tile.kernel

// CHECK: llvm.mlir.global internal constant @program.required.0("the size\00")

// How many positions segments have, by owner.
// CHECK-LABEL: llvm.func internal @program.counts.0(
// CHECK: scf.for %[[S:.*]] =
// CHECK: ring.segment %[[S]] of <zigzag over 2>[
// CHECK: llvm.store

// CHECK-LABEL: func.func private @program(
// CHECK-SAME: %[[RANK:arg0]]: !llvm.ptr, %[[TABLE:arg1]]: !llvm.ptr, %arg2: memref<8x4xf32>, %arg3: index, %arg4: i16, %[[MOVES:arg5]]: memref<2x1x2xi1>)
// CHECK-NOT: ring.grid
// Uses and arguments of two launches, and a transfer: memory of the whole program.
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i64)
// CHECK-DAG: %[[TWO:.*]] = llvm.mlir.constant(2 : i64)
// CHECK-DAG: %[[MEMBERS:.*]] = llvm.mlir.constant(22 : i64)
// CHECK-DAG: %[[TRANSFER:.*]] = llvm.alloca %[[MEMBERS]] x i64

// ring.require
// CHECK: %[[FOUND:.*]] = arith.index_cast %arg3 : index to i64
// CHECK: %[[WHAT:.*]] = llvm.mlir.addressof @program.required.0
// CHECK: llvm.getelementptr %[[TABLE]][0, 9]
// CHECK: llvm.call %{{.*}}(%[[RANK]], %[[FOUND]], %{{.*}}, %[[WHAT]]) : !llvm.ptr, (!llvm.ptr, i64, i64, !llvm.ptr) -> ()

// shard.process_multi_index
// CHECK: llvm.getelementptr %[[TABLE]][0, 2]
// CHECK: llvm.call %{{.*}}(%[[RANK]]) : !llvm.ptr, (!llvm.ptr) -> i64

// tile.allocate: "slice" is 1, "packing" 2, "schedule" 3.
// CHECK: %[[ALLOCATE:.*]] = llvm.getelementptr %[[TABLE]][0, 3]
// CHECK: llvm.call %{{.*}}(%[[RANK]], %{{.*}}, %[[ONE]]) : !llvm.ptr, (!llvm.ptr, i64, i64) -> !llvm.ptr
// CHECK: llvm.load %[[ALLOCATE]]
// CHECK-NEXT: %[[Y:.*]] = llvm.call %{{.*}}(%[[RANK]], %{{.*}}, %[[TWO]])
// CHECK: llvm.load %[[ALLOCATE]]
// CHECK-NEXT: llvm.call %{{.*}}(%[[RANK]], %{{.*}}, %[[THREE:[0-9]+]])
// CHECK: llvm.load %[[ALLOCATE]]
// CHECK-NEXT: llvm.call %{{.*}}(%[[RANK]], %{{.*}}, %[[THREE]])

// tile.threads
// CHECK: %[[ASK:.*]] = llvm.getelementptr %[[TABLE]][0, 12]
// CHECK: %[[FUNCTION:.*]] = llvm.load %[[ASK]]
// CHECK: %[[THREADS:.*]] = llvm.call %[[FUNCTION]](%[[RANK]]) : !llvm.ptr, (!llvm.ptr) -> i64
// CHECK: %[[TASKS:.*]] = arith.index_cast %[[THREADS]] : i64 to index

// tile.sort
// CHECK: llvm.getelementptr %[[TABLE]][0, 5]
// CHECK: llvm.call %{{.*}}(%[[RANK]], %{{.*}}, %{{.*}}, %[[ORDER:.*]]) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, i64, !llvm.ptr) -> ()

// ring.start: a burst_transfer, whose messages the runtime lists, then the call;
// channel 3.
// CHECK: llvm.mlir.addressof @program.counts.0
// CHECK: %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK: llvm.getelementptr %[[TRANSFER]][
// CHECK: %[[LIST:.*]] = llvm.getelementptr %[[TABLE]][0, 14]
// CHECK: %[[MESSAGES:.*]] = llvm.call %{{.*}}(%[[RANK]], %[[TRANSFER]]) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> !llvm.ptr
// CHECK: llvm.getelementptr %[[TABLE]][0, 7]
// CHECK: %[[TOKEN:.*]] = llvm.call %{{.*}}(%[[RANK]], %[[THREE]], %[[MESSAGES]]) : !llvm.ptr, (!llvm.ptr, i64, !llvm.ptr) -> i64

// tile.launch in an order, with two uses
// CHECK: %[[KERNEL:.*]] = llvm.mlir.addressof @kernel.kernel
// What is read, then what is written.
// CHECK: llvm.getelementptr %[[TABLE]][0, 13]
// CHECK: llvm.call %{{.*}}(%[[RANK]], %[[USES:.*]], %{{.*}}, %[[TWO]], %[[FOUR:.*]], %[[ONE]]) :
// CHECK: llvm.call %{{.*}}(%[[RANK]], %{{.*}}, %{{.*}}, %[[TWO]], %[[FOUR]], %[[THREE]]) :
// CHECK: %[[LAUNCH:.*]] = llvm.getelementptr %[[TABLE]][0, 6]
// CHECK: llvm.call %{{.*}}(%[[RANK]], %[[KERNEL]], %{{.*}}, %{{.*}}, %[[ORDER]], %[[TWO]], %{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr, !llvm.ptr, i64, !llvm.ptr, i64, !llvm.ptr) -> ()

// ring.wait
// CHECK: llvm.getelementptr %[[TABLE]][0, 8]
// CHECK: llvm.call %{{.*}}(%[[RANK]], %[[TOKEN]]) : !llvm.ptr, (!llvm.ptr, i64) -> ()

// tile.launch without an order
// CHECK: llvm.load %[[LAUNCH]]
// CHECK-NEXT: llvm.call %{{.*}}(%[[RANK]], %[[KERNEL]], %{{.*}}, %{{.*}}, %[[NULL]], %[[TWO]], %{{.*}})

// memref.dealloc
// CHECK: llvm.getelementptr %[[TABLE]][0, 4]
// CHECK: llvm.call %{{.*}}(%[[RANK]], %{{.*}}) : !llvm.ptr, (!llvm.ptr, !llvm.ptr) -> ()
// CHECK-NEXT: return

// What the image exports. Of the parameters one is sharded, in two segments.
// CHECK-LABEL: llvm.func @program.segments(%arg0: i32, %arg1: i64, %arg2: i64, %arg3: !llvm.ptr)
// CHECK-COUNT-1: arith.cmpi eq, %arg0
// CHECK-COUNT-2: ring.segment
// CHECK-NOT: ring.segment
// CHECK-LABEL: llvm.func @program.run(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: !llvm.ptr)
// CHECK: func.call @program(%arg0, %arg1, {{.*}}) : (!llvm.ptr, !llvm.ptr, memref<8x4xf32>, index, i16, memref<2x1x2xi1>) -> ()
// CHECK-NOT: shard.grid

shard.grid @cp(shape = 2)
func.func private @kernel(%task: index, %x: memref<8x4xf32>, %y: memref<?x4xf32>, %n: index, %s: bf16)
    attributes {tile.kernel} {
  return
}
#layout = #ring.layout<zigzag over 2>
!b = memref<8x4xf32, strided<[?, 1], offset: ?>>
func.func @program(%x: memref<8x4xf32> {burst.name = "x", ring.shard = #ring.shard<#layout, dim 0 extent 16>},
                   %n: index, %s: bf16, %moves: memref<2x1x2xi1>)
    attributes {ring.grid = @cp} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  ring.require %n at least %c16, "the size"
  %rank = shard.process_multi_index on @cp axes = [0] : index
  %peer = arith.subi %c1, %rank : index
  %slot = tile.allocate "slice" () : memref<8x4xf32>
  %y = tile.allocate "packing" (%n) : memref<?x4xf32>
  %costs = tile.allocate "schedule" (%n) : memref<?xi64>
  %order = tile.allocate "schedule" (%n) : memref<?xi32>
  %threads = tile.threads
  tile.sort %costs into %order : memref<?xi64>, memref<?xi32>
  %token = ring.start %x dims [0] of <zigzag over 2>[%rank] extent %c16 to %peer
      receive[%peer] from %peer segments(%moves[%c0] : memref<2x1x2xi1>) into %slot : memref<8x4xf32>
      channel <@cp, 3> : (memref<8x4xf32>) -> !ring.token
  tile.launch @kernel[%n] order(%order : memref<?xi32>) reads(%x : memref<8x4xf32>) writes(%y : memref<?x4xf32>) with(%n, %s : index, bf16)
  ring.wait %token : !ring.token
  tile.launch @kernel[%threads] reads(%slot : memref<8x4xf32>) writes(%y : memref<?x4xf32>) with(%n, %s : index, bf16)
  memref.dealloc %y : memref<?x4xf32>
  return
}
