// RUN: burst-opt %s --burst-to-ring | FileCheck %s --check-prefix=OVERLAP
// RUN: burst-opt %s --burst-to-ring=overlap=false | FileCheck %s --check-prefix=INLINE
// RUN: burst-opt %s --burst-to-ring --inline --symbol-dce --ring-bufferize | FileCheck %s --check-prefix=BUFFERS
// RUN: burst-opt %s --burst-to-ring=overlap=false --inline --symbol-dce --ring-bufferize | FileCheck %s --check-prefix=ONE
// RUN: burst-opt %s --burst-to-ring --ring-plan -o /dev/null | FileCheck %s --check-prefix=PLAN
// RUN: burst-opt %s --burst-to-ring=overlap=false --ring-plan -o /dev/null | FileCheck %s --check-prefix=PLAN-ONE

shard.grid @cp(shape = 2)
!q = tensor<1x32x8x4xf32>
!l = tensor<1x8x32xf32>

// The next chunk comes while one is attended, and results go while the next one
// is.
//
// OVERLAP-LABEL: func.func @chunks
// OVERLAP: %[[T0:.*]] = ring.start {{.*}} all_to_all heads
// OVERLAP: take_heads {{.*}} chunk 1 of 4
// OVERLAP: %[[T1:.*]] = ring.start {{.*}} all_to_all heads
// OVERLAP: ring.wait %[[T0]]
// OVERLAP: ring.attend
// OVERLAP: %[[R0:.*]] = ring.start {{.*}} all_to_all sequence
// OVERLAP: take_heads {{.*}} chunk 2 of 4
// OVERLAP: %[[T2:.*]] = ring.start {{.*}} all_to_all heads
// OVERLAP: ring.wait %[[T1]]
// OVERLAP: ring.attend
// OVERLAP: %[[O0:.*]] = ring.wait %[[R0]]
// OVERLAP: %[[R1:.*]] = ring.start {{.*}} all_to_all sequence
// OVERLAP: take_heads {{.*}} chunk 3 of 4
// OVERLAP: %[[T3:.*]] = ring.start {{.*}} all_to_all heads
// OVERLAP: ring.wait %[[T2]]
// OVERLAP: ring.attend
// OVERLAP: %[[O1:.*]] = ring.wait %[[R1]]
// OVERLAP: %[[R2:.*]] = ring.start {{.*}} all_to_all sequence
// OVERLAP: ring.wait %[[T3]]
// OVERLAP: ring.attend
// OVERLAP: %[[O2:.*]] = ring.wait %[[R2]]
// OVERLAP: %[[R3:.*]] = ring.start {{.*}} all_to_all sequence
// OVERLAP: %[[O3:.*]] = ring.wait %[[R3]]
// OVERLAP: ring.join_heads %[[O0]], %[[O1]], %[[O2]], %[[O3]]

// INLINE-LABEL: func.func @chunks
// INLINE: %[[T0:.*]] = ring.start {{.*}} all_to_all heads
// INLINE-NOT: ring.start
// INLINE: ring.wait %[[T0]]
// INLINE: ring.attend
// INLINE: %[[R0:.*]] = ring.start {{.*}} all_to_all sequence
// INLINE-NOT: take_heads
// INLINE: ring.wait %[[R0]]
// INLINE: take_heads {{.*}} chunk 1 of 4

// Two buffers of what comes and of what goes, which all chunks take turns with;
// or one. Chunks are views of arguments and results.
//
// BUFFERS-LABEL: func.func @chunks
// BUFFERS-SAME: %[[X:[^ ]*]]: memref<1x16x8x4xf32
// BUFFERS-SAME: %[[R:[^ ]*]]: memref<1x16x8x4xf32, strided<[?, ?, ?, 1], offset: ?>> {ring.result
// BUFFERS: %[[V0:.*]] = memref.subview %[[X]][0, 0, 0, 0] [1, 16, 2, 4] [1, 1, 4, 1]
// BUFFERS: %[[C0:.*]] = memref.cast %[[V0]]
// BUFFERS: %[[B0:.*]] = tile.allocate "slice"() : memref<1x1x32x1x4xf32>
// BUFFERS: %[[S0:.*]] = memref.subview %[[B0]]
// BUFFERS: %[[I0:.*]] = memref.cast %[[S0]]
// BUFFERS: ring.start %[[C0]] {{.*}} into %[[I0]]
// BUFFERS: %[[V1:.*]] = memref.subview %[[X]][0, 0, 1, 0] [1, 16, 2, 4] [1, 1, 4, 1]
// BUFFERS: %[[B1:.*]] = tile.allocate "slice"()
// BUFFERS: %[[M0:.*]] = tile.allocate "state"() : memref<1x32x1x4xf32>
// BUFFERS: ring.attend {{.*}}
// BUFFERS: %[[W0:.*]] = memref.subview %[[R]][0, 0, 0, 0] [1, 16, 2, 4] [1, 1, 4, 1]
// BUFFERS: %[[D0:.*]] = memref.cast %[[W0]]
// BUFFERS: ring.start %[[M0]] {{.*}} into %[[D0]]
// BUFFERS: %[[S2:.*]] = memref.subview %[[B0]]
// BUFFERS: %[[I2:.*]] = memref.cast %[[S2]]
// BUFFERS: ring.start {{.*}} into %[[I2]]
// BUFFERS: %[[M1:.*]] = tile.allocate "state"() : memref<1x32x1x4xf32>
// BUFFERS-NOT: tile.allocate "slice"
// BUFFERS-NOT: tile.allocate "state"() : memref<1x32x1x4xf32>
// BUFFERS: memref.subview %[[R]][0, 0, 3, 0]
// BUFFERS-NOT: memref.copy
// BUFFERS: return

// ONE-LABEL: func.func @chunks
// ONE: tile.allocate "slice"
// ONE-NOT: tile.allocate "slice"
// ONE: tile.allocate "state"() : memref<1x32x1x4xf32>
// ONE-NOT: tile.allocate "state"() : memref<1x32x1x4xf32>
// ONE: return

// An argument and a result of 2048 bytes; a chunk is a fourth of that, and so are
// its rows, of 128 bytes.
//
// PLAN: "peak_bytes": 6400
// PLAN-ONE: "peak_bytes": 5248
func.func @chunks(%x: !q) -> !q {
  %o, %lse = burst.attention %x, %x, %x
      sequence <@cp, zigzag> strategy <ulysses in 4 chunks>
      : (!q, !q, !q) -> (!q, !l)
  return %o : !q
}
