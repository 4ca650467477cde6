// RUN: burst-opt %s --split-input-file --verify-diagnostics --cuda-upload-tables | FileCheck %s
// RUN: sed s/x32xf32/x32xbf16/g %examples/documents.mlir | burst-opt --burst-to-ring --inline --symbol-dce --ring-bufferize --ring-lower-to-tile="rows=64 columns=32 warps=4" --canonicalize --cse --cuda-upload-tables | FileCheck %s --check-prefix=DOCUMENTS

// Tables that the mask reads are the host's: it finds out which tiles there are.
// DOCUMENTS-LABEL: func.func @{{[a-z]+}}(
// DOCUMENTS-SAME: memref<{{[0-9]+}}xi32, {{[^>]*>}}> {burst.name = "{{[a-z_]+}}", tile.host}
// DOCUMENTS: %[[IDS:.*]] = tile.upload %{{.*}} : memref<{{[0-9]+}}xi32
// DOCUMENTS: tile.launch @{{[a-z]+}}_attend{{.*}} reads({{.*}}%[[IDS]]

shard.grid @cp(shape = 1)
func.func private @count(%task: index, %list: memref<?xi32>) attributes {tile.kernel} {
  return
}
func.func private @work(%task: index, %list: memref<?xi32>, %x: memref<?xf32>, %y: memref<?xf32>)
    attributes {tile.kernel, tile.warps = 4 : i64} {
  return
}

// CHECK-LABEL: func.func @program(
// CHECK-SAME: %[[TABLE:.*]]: memref<?xi32> {tile.host}, %[[X:.*]]: memref<?xf32>, %[[Y:.*]]: memref<?xf32>)
func.func @program(%table: memref<?xi32>, %x: memref<?xf32>, %y: memref<?xf32>)
    attributes {ring.grid = @cp} {
  // CHECK-NEXT: %[[COPY:.*]] = tile.upload %[[TABLE]] : memref<?xi32>
  %n = arith.constant 8 : index
  // CHECK: %[[LIST:.*]] = tile.allocate "schedule"
  %list = tile.allocate "schedule" (%n) : memref<?xi32>
  // CHECK: tile.launch @count[%{{.*}}] reads(%[[TABLE]]
  tile.launch @count[%n] reads(%table : memref<?xi32>) writes() with()
  // CHECK: tile.launch @count[%{{.*}}] reads() writes(%[[LIST]]
  tile.launch @count[%n] reads() writes(%list : memref<?xi32>) with()
  // One copy for both launches that read it.
  // CHECK-NEXT: %[[UPLOADED:.*]] = tile.upload %[[LIST]]
  // CHECK-NEXT: tile.launch @work[%{{.*}}] reads(%[[UPLOADED]], %[[X]] : {{.*}}) writes(%[[Y]]
  tile.launch @work[%n] reads(%list, %x : memref<?xi32>, memref<?xf32>) writes(%y : memref<?xf32>) with()
  // CHECK-NEXT: tile.launch @work[%{{.*}}] order(%[[UPLOADED]] : {{.*}}) reads(%[[UPLOADED]]
  tile.launch @work[%n] order(%list : memref<?xi32>) reads(%list, %x : memref<?xi32>, memref<?xf32>) writes(%y : memref<?xf32>) with()
  // CHECK-NEXT: memref.dealloc %[[UPLOADED]]
  // CHECK-NEXT: tile.launch @work[%{{.*}}] reads(%[[COPY]]
  tile.launch @work[%n] reads(%table, %x : memref<?xi32>, memref<?xf32>) writes(%y : memref<?xf32>) with()
  // CHECK-NEXT: memref.dealloc %[[LIST]]
  memref.dealloc %list : memref<?xi32>
  return
}

// -----

// A constant lies in the program's code.
shard.grid @cp(shape = 1)
memref.global "private" constant @slopes : memref<2xf32> = dense<[0.5, 0.25]>
func.func private @count(%task: index, %slopes: memref<2xf32>) attributes {tile.kernel} {
  return
}
func.func private @work(%task: index, %slopes: memref<2xf32>) attributes {tile.kernel, tile.warps = 4 : i64} {
  return
}

// CHECK-LABEL: func.func @constants(
func.func @constants(%n: index) attributes {ring.grid = @cp} {
  // CHECK-NEXT: %[[SLOPES:.*]] = memref.get_global @slopes
  // CHECK-NEXT: %[[COPY:.*]] = tile.upload %[[SLOPES]] : memref<2xf32>
  // CHECK-NEXT: tile.launch @count[%{{.*}}] reads(%[[SLOPES]]
  // CHECK-NEXT: tile.launch @work[%{{.*}}] reads(%[[COPY]]
  // CHECK-NEXT: tile.launch @work[%{{.*}}] reads(%[[COPY]]
  // CHECK-NEXT: return
  %slopes = memref.get_global @slopes : memref<2xf32>
  tile.launch @count[%n] reads(%slopes : memref<2xf32>) writes() with()
  tile.launch @work[%n] reads(%slopes : memref<2xf32>) writes() with()
  tile.launch @work[%n] reads(%slopes : memref<2xf32>) writes() with()
  return
}

// -----

shard.grid @cp(shape = 1)
func.func @host(%n: index) attributes {ring.grid = @cp} {
  %zero = arith.constant 0.0 : f32
  %slice = tile.allocate "slice" (%n) : memref<?xf32>
  // expected-error @below {{is done by the host, and reads or writes memory of the GPU: 'memref<?xf32>'}}
  memref.store %zero, %slice[%n] : memref<?xf32>
  return
}

// -----

shard.grid @cp(shape = 1)
func.func private @work(%task: index, %list: memref<?xi32>) attributes {tile.kernel, tile.warps = 4 : i64} {
  return
}
func.func @writes(%n: index) attributes {ring.grid = @cp} {
  %list = tile.allocate "schedule" (%n) : memref<?xi32>
  // expected-error @below {{writes memory of the host: 'memref<?xi32>'}}
  tile.launch @work[%n] reads() writes(%list : memref<?xi32>) with()
  return
}
