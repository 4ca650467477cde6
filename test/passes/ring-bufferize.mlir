// RUN: split-file %s %t
// DEFINE: %{bufferize} = burst-opt --burst-to-ring --inline --symbol-dce --ring-bufferize
// RUN: %{bufferize} %t/ring.mlir | FileCheck %t/ring.mlir
// RUN: %{bufferize} %t/two.mlir | FileCheck %t/two.mlir
// RUN: %{bufferize} %t/alone.mlir | FileCheck %t/alone.mlir
// RUN: burst-opt %t/short.mlir --burst-to-ring=fuse=false --inline --symbol-dce --ring-bufferize | FileCheck %t/short.mlir
// RUN: %{bufferize} %t/dynamic.mlir | FileCheck %t/dynamic.mlir
// RUN: %{bufferize} %t/captures.mlir | FileCheck %t/captures.mlir
// RUN: burst-opt %t/results.mlir --burst-to-ring=fuse=false --inline --symbol-dce --ring-bufferize | FileCheck %t/results.mlir
// RUN: %{bufferize} %t/empty.mlir | FileCheck %t/empty.mlir
// RUN: %{bufferize} %t/tables.mlir | FileCheck %t/tables.mlir
// RUN: %python %S/../tools/burst-run/Inputs/tensors.py make %t/in arg0=f32:2x7x2x4 arg1=f32:2x7x2x4 arg2=f32:2x7x2x4 arg3=f32:2x7x2x4 arg4=f32:2x2x7 arg5=f32:2x7x2x4 arg6=f32:7x7
// RUN: burst-run %t/tables.mlir --entry tables --in %t/in --check
// RUN: burst-run %t/tables.mlir --entry twice --in %t/in --check
// RUN: %{bufferize} %t/queries.mlir | FileCheck %t/queries.mlir
// RUN: burst-opt %t/queries.mlir --burst-to-ring=overlap=false --inline --symbol-dce --ring-bufferize | FileCheck %t/queries.mlir --check-prefix=APART

// Results are arguments, which hold o and m all the time; what is received
// alternates between two slots; own slices are not copied.
//
//--- ring.mlir
// CHECK-LABEL: func.func @ring(
// CHECK-SAME: %[[Q:.*]]: memref<1x8x2x8xf32, strided<[?, ?, ?, 1], offset: ?>> {burst.name = "q", ring.shard
// CHECK-SAME: %[[K:arg[0-9]+]]: memref<1x8x1x8xf32, strided<[?, ?, ?, 1], offset: ?>> {ring.shard
// CHECK-SAME: %[[V:arg[0-9]+]]: memref<1x8x1x8xf32, strided<[?, ?, ?, 1], offset: ?>> {ring.shard
// CHECK-SAME: %[[O:arg[0-9]+]]: memref<1x8x2x8xf32, strided<[?, ?, ?, 1], offset: ?>> {burst.name = "o", ring.result, ring.shard
// CHECK-SAME: %[[LSE:arg[0-9]+]]: memref<1x2x8xf32, strided<[?, ?, 1], offset: ?>> {ring.result, ring.shard
// CHECK-SAME: attributes {ring.grid = @cp}
// CHECK: %[[L:.*]] = tile.allocate "state"() : memref<1x2x8xf32>
// CHECK-NEXT: ring.init %[[Q]] into %[[O]], %[[LSE]], %[[L]] :
// CHECK: %[[KEYS:.*]] = tile.allocate "slice"() : memref<2x1x8x1x8xf32>
// CHECK: %[[VALUES:.*]] = tile.allocate "slice"() : memref<2x1x8x1x8xf32>
// CHECK: %[[OWNK:.*]] = memref.cast %[[K]]
// CHECK-NEXT: %[[OWNV:.*]] = memref.cast %[[V]]
// CHECK-NOT: tile.allocate
// CHECK: scf.for {{.*}} iter_args(%[[KT:.*]] = %[[OWNK]], %[[VT:.*]] = %[[OWNV]], %{{.*}}) -> (memref<1x8x1x8xf32, strided<[?, ?, ?, 1], offset: ?>>, memref<1x8x1x8xf32, strided<[?, ?, ?, 1], offset: ?>>, index) {
// CHECK: %[[TURN:.*]] = arith.remui %{{.*}}, %c2
// CHECK: memref.subview %[[KEYS]][%[[TURN]], 0, 0, 0, 0] [1, 1, 8, 1, 8]
// CHECK-NEXT: %[[KN:.*]] = memref.cast
// CHECK: memref.subview %[[VALUES]][
// CHECK-NEXT: %[[VN:.*]] = memref.cast
// CHECK: %[[TOKEN:.*]] = ring.start %[[KT]], %[[VT]] {{.*}} into %[[KN]], %[[VN]] : {{.*}} -> !ring.token
// CHECK: ring.attend %[[Q]]
// CHECK-NEXT: slice (%[[KT]], %[[VT]] at
// CHECK-NEXT: state %[[O]], %[[LSE]], %[[L]]
// CHECK: ring.wait %[[TOKEN]] : !ring.token{{$}}
// CHECK-NEXT: scf.yield %[[KN]], %[[VN]], %{{.*}} :
// CHECK: ring.attend %[[Q]]
// CHECK: ring.finalize %[[O]], %[[LSE]], %[[L]] into %[[O]], %[[LSE]]
// CHECK-NEXT: return{{$}}
shard.grid @cp(shape = 4)
!q = tensor<1x32x2x8xf32>
!k = tensor<1x32x1x8xf32>
!l = tensor<1x2x32xf32>
func.func @ring(%q: !q {burst.name = "q"}, %k: !k, %v: !k) -> (!q {burst.name = "o"}, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ring_kv> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// One transfer needs one slot.
//
//--- two.mlir
// CHECK-COUNT-2: tile.allocate "slice"() : memref<1x1x16x1x8xf32>
// CHECK-NOT: tile.allocate
shard.grid @cp(shape = 2)
!k = tensor<1x32x1x8xf32>
!l = tensor<1x1x32xf32>
func.func @two(%q: !k, %k: !k, %v: !k) -> (!k, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ring_kv> : (!k, !k, !k) -> (!k, !l)
  return %o, %lse : !k, !l
}

// Alone, nothing is received.
//
//--- alone.mlir
// CHECK-NOT: tile.allocate
// CHECK: ring.attend
// CHECK: first last into %arg3, %arg4 scale
// CHECK-NOT: ring.start
// CHECK: return
shard.grid @cp(shape = 1)
!k = tensor<1x32x1x8xf32>
!l = tensor<1x1x32xf32>
func.func @alone(%q: !k, %k: !k, %v: !k) -> (!k, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ring_kv> : (!k, !k, !k) -> (!k, !l)
  return %o, %lse : !k, !l
}

// A result of 16 bits cannot hold the state.
//
//--- short.mlir
// CHECK-LABEL: func.func @short(
// CHECK-SAME: %[[OUT:arg[0-9]+]]: memref<1x32x1x8xbf16, strided<[?, ?, ?, 1], offset: ?>> {ring.result
// CHECK-SAME: %[[LSE:arg[0-9]+]]: memref<1x1x32xf32, strided<[?, ?, 1], offset: ?>> {ring.result
// CHECK: %[[O:.*]] = tile.allocate "state"() : memref<1x32x1x8xf32>
// CHECK-NEXT: %[[L:.*]] = tile.allocate "state"() : memref<1x1x32xf32>
// CHECK-NEXT: ring.init %{{.*}} into %[[O]], %[[LSE]], %[[L]]
// CHECK: ring.finalize %[[O]], %[[LSE]], %[[L]] into %[[OUT]], %[[LSE]]
shard.grid @cp(shape = 1)
!k = tensor<1x32x1x8xbf16>
!l = tensor<1x1x32xf32>
func.func @short(%q: !k, %k: !k, %v: !k) -> (!k, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ring_kv> : (!k, !k, !k) -> (!k, !l)
  return %o, %lse : !k, !l
}

// Where sizes are open, the extent's argument names results, too, all tensors must
// have one batch, and a slot has room for the largest shard.
//
//--- dynamic.mlir
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME: index {ring.extent = array<i64: 0, 1, 5, 1, 6, 2>}
// CHECK-SAME: index {ring.extent = array<i64: 1, 1, 2, 1>}
// CHECK: %[[Q:.*]] = memref.dim %arg0, %c0
// CHECK: %[[K:.*]] = memref.dim %arg1, %c0
// CHECK: ring.require %[[K]] at least %[[Q]], "batch of arg1"
// CHECK: ring.require %[[Q]] at least %[[K]], "batch of arg0"
// CHECK: ring.require {{.*}}, "batch of arg2"
// CHECK: ring.require {{.*}}, "batch of result 0"
// CHECK: ring.require {{.*}}, "batch of result 1"
// CHECK: %[[MOST:.*]] = scf.for
// CHECK-COUNT-2: ring.segment
// CHECK: arith.maxsi
// CHECK: tile.allocate "slice"(%{{.*}}, %[[MOST]]) : memref<2x?x?x1x8xf32>
shard.grid @cp(shape = 3)
!k = tensor<?x?x1x8xf32>
!l = tensor<?x1x?xf32>
func.func @dynamic(%q: !k, %k: !k, %v: !k) -> (!k, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ring_kv> : (!k, !k, !k) -> (!k, !l)
  return %o, %lse : !k, !l
}

// Captured tables, constant or not, are buffers outside of regions and tensors
// inside.
//
//--- captures.mlir
// CHECK: memref.global "private" constant @[[$TABLE:.*]] : memref<32xi32>
// CHECK-LABEL: func.func @captures(
// CHECK-SAME: %[[ARGUMENT:arg[0-9]+]]: memref<32xi32, strided<[1], offset: ?>>
// CHECK: %[[CONSTANT:.*]] = memref.get_global @[[$TABLE]]
// CHECK: ring.attend
// CHECK: mask(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[A:.*]] = %[[CONSTANT]] : memref<32xi32>, %[[B:.*]] = %[[ARGUMENT]] : memref<32xi32, strided<[1], offset: ?>>)
// CHECK: tensor.extract %[[A]]
shard.grid @cp(shape = 1)
!k = tensor<1x32x1x8xf32>
!l = tensor<1x1x32xf32>
func.func @captures(%q: !k, %k: !k, %v: !k, %b: tensor<32xi32>) -> (!k, !l) {
  %a = arith.constant dense<[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]> : tensor<32xi32>
  %o, %lse = burst.attention %q, %k, %v
      mask(%b0, %h, %i, %j, %sq, %sk, %x = %a : tensor<32xi32>, %y = %b : tensor<32xi32>) {
        %0 = tensor.extract %x[%i] : tensor<32xi32>
        %1 = tensor.extract %y[%j] : tensor<32xi32>
        %keep = arith.cmpi eq, %0, %1 : i32
        burst.yield %keep : i1
      } sequence <@cp, zigzag> strategy <ring_kv> : (!k, !k, !k) -> (!k, !l)
  return %o, %lse : !k, !l
}

// Two attentions begin with states of their own, though cse made one init; a value
// that is returned twice is copied once; what is not returned stays in the state.
//
//--- results.mlir
// CHECK-LABEL: func.func @results(
// CHECK-SAME: %[[A:arg[0-9]+]]: memref<1x32x1x8xf32, strided<[?, ?, ?, 1], offset: ?>> {ring.result
// CHECK-SAME: %[[B:arg[0-9]+]]: memref<1x32x1x8xf32, strided<[?, ?, ?, 1], offset: ?>> {ring.result
// CHECK-SAME: %[[C:arg[0-9]+]]: memref<1x32x1x8xf32, strided<[?, ?, ?, 1], offset: ?>> {ring.result
// CHECK: ring.init %{{.*}} into %[[X:.*]], %[[Y:.*]], %[[Z:[^ ]*]] :
// CHECK: ring.init %{{.*}} into %[[U:.*]], %[[V:.*]], %[[W:[^ ]*]] :
// CHECK: ring.finalize
// CHECK: ring.finalize
// CHECK-NOT: memref.copy
// CHECK: memref.copy %[[A]], %[[B]]
// CHECK-NEXT: return
shard.grid @cp(shape = 1)
!k = tensor<1x32x1x8xf32>
!l = tensor<1x1x32xf32>
func.func @results(%q: !k, %k: !k, %v: !k) -> (!k, !k, !k) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ring_kv> : (!k, !k, !k) -> (!k, !l)
  %o2, %lse2 = burst.attention %q, %k, %v mask causal sequence <@cp, zigzag> strategy <ring_kv> : (!k, !k, !k) -> (!k, !l)
  return %o, %o, %o2 : !k, !k, !k
}

// Of nothing, nothing is sent.
//
//--- empty.mlir
// CHECK-LABEL: func.func @empty(
// CHECK-NOT: ring.start
// CHECK: return
shard.grid @cp(shape = 3)
!q = tensor<1x33x1x8xf32>
!k = tensor<1x0x1x8xf32>
!l = tensor<1x1x33xf32>
func.func @empty(%q: !q, %k: !k, %v: !k) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, contiguous> strategy <ring_kv> : (!q, !k, !k) -> (!q, !l)
  return %o, %lse : !q, !l
}

// The gradient of a table is made where the caller wants it, who must have as
// much memory there; of one that is wanted twice there are two copies.
//
//--- tables.mlir
// CHECK-LABEL: func.func @tables(
// CHECK-SAME: %[[T:arg[0-9]+]]: memref<?x?xf32, strided<[?, 1], offset: ?>>, %{{.*}}: index {ring.extent
// CHECK-SAME: %[[G:arg[0-9]+]]: memref<?x?xf32, strided<[?, 1], offset: ?>> {ring.partial, ring.result}
// CHECK: %[[FOUND:.*]] = memref.dim %[[G]], %c1
// CHECK: %[[WANTED:.*]] = memref.dim %[[T]], %c1
// CHECK-NEXT: ring.require %[[FOUND]] at least %[[WANTED]], "size of dimension 1 of result 1"
// CHECK: ring.zero %[[T]] into %[[G]] :
// CHECK: ring.attend_grad
// CHECK: into %{{.*}}, %{{.*}}, %{{.*}}, %[[G]] captures [0]
// CHECK-NOT: memref.copy
// CHECK-LABEL: func.func @twice(
// CHECK-SAME: %[[T:arg[0-9]+]]: memref<?x?xf32, strided<[?, 1], offset: ?>>, %{{.*}}: index {ring.extent
// CHECK: ring.zero %[[T]] into %[[G:[^ ]*]] :
// CHECK: ring.require %{{.*}} at least %{{.*}}, "size of dimension 0 of result 0"
// CHECK: ring.require %{{.*}} at least %{{.*}}, "size of dimension 1 of result 0"
// CHECK: memref.copy %[[G]], %
// CHECK: ring.require %{{.*}} at least %{{.*}}, "size of dimension 1 of result 1"
// CHECK: memref.copy %[[G]], %
shard.grid @cp(shape = 3)
!q = tensor<?x?x2x4xf32>
!l = tensor<?x2x?xf32>
!t = tensor<?x?xf32>
func.func @tables(%q: !q, %k: !q, %v: !q, %o: !q, %l: !l, %do: !q, %bias: !t) -> (!q, !t) {
  %dq, %dk, %dv, %db = burst.attention_backward %q, %k, %v, %o, %l, %do
      score bias(%bias : !t) sequence <@cp, zigzag> strategy <ring_kv> gradients [0]
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
  return %dq, %db : !q, !t
}
func.func @twice(%q: !q, %k: !q, %v: !q, %o: !q, %l: !l, %do: !q, %bias: !t) -> (!t, !t) {
  %dq, %dk, %dv, %db = burst.attention_backward %q, %k, %v, %o, %l, %do
      score bias(%bias : !t) sequence <@cp, zigzag> strategy <ring_kv> gradients [0]
      : (!q, !q, !q, !q, !l, !q) -> (!q, !q, !q, !t)
  return %db, %db : !t, !t
}

// States of queries that travel are made in two places in turn, for that of the
// turn before is under way; they arrive in one place each, and so do those on the way to the owner.
//
//--- queries.mlir
// CHECK-LABEL: func.func @queries(
// CHECK-SAME: %[[Q:arg0]]: {{.*}}, %[[OUT:arg3]]: memref<1x32x1x8xf32, {{.*}} {ring.result, {{.*}}, %[[LSE:arg4]]: memref<1x1x32xf32,
// CHECK: %[[L:.*]] = tile.allocate "state"() : memref<1x1x32xf32>
// CHECK: ring.init %[[Q]] into %[[OUT]], %[[LSE]], %[[L]]
// CHECK: tile.allocate "slice"() : memref<1x1x32x1x8xf32>
// CHECK: ring.start %[[OUT]], %[[LSE]], %[[L]] {{.*}} segments(%{{.*}}[%c0] : memref<1x1x1xi1>)
// CHECK: tile.allocate "slice"() : memref<1x1x32x1x8xf32>
// CHECK: ring.start %[[OUT]], %[[LSE]], %[[L]] {{.*}} segments(%{{.*}}[%c0] : memref<1x1x1xi1>)
// CHECK: tile.allocate "slice"() : memref<2x1x32x1x8xf32>
// CHECK: tile.allocate "state"() : memref<2x1x32x1x8xf32>
// CHECK: tile.allocate "state"() : memref<2x1x1x32xf32>
// CHECK: tile.allocate "state"() : memref<2x1x1x32xf32>
// CHECK: scf.for {{.*}} iter_args(%[[QT:[^ ]*]] = {{.*}} -> (memref<{{[^>]*>}}>, index, !ring.token, !ring.token)
// CHECK: ring.init %[[QT]] into %[[PO:.*]], %[[PM:.*]], %[[PL:[^ ]*]] :
// CHECK: ring.attend
// CHECK: state %[[PO]], %[[PM]], %[[PL]] scale
// CHECK: ring.merge(%[[OUT]], %[[LSE]], %[[L]]) with(%[[HO:.*]], %{{.*}}, %{{.*}}) of
// CHECK: ring.merge(%[[OUT]], %[[LSE]], %[[L]]) with(%[[PO]], %[[PM]], %[[PL]]) of
// CHECK: ring.merge(%[[PO]], %[[PM]], %[[PL]]) with
// CHECK: ring.start %[[PO]], %[[PM]], %[[PL]]
// CHECK: ring.start %[[PO]], %[[PM]], %[[PL]]
// CHECK: ring.merge(%[[OUT]], %[[LSE]], %[[L]]) with
// CHECK: ring.finalize %[[OUT]], %[[LSE]], %[[L]] into %[[OUT]], %[[LSE]]
//
// Where each transfer is waited for at once, one place is enough.
//
// APART-LABEL: func.func @queries(
// APART: tile.allocate "state"() : memref<1x1x32x1x8xf32>
// APART: scf.for
// APART: ring.merge
shard.grid @cp(shape = 2)
!q = tensor<1x64x1x8xf32>
!l = tensor<1x1x64xf32>
func.func @queries(%q: !q, %k: !q, %v: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag> strategy <ring_q> : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}
