// RUN: burst-opt %s --burst-lower-scalars -verify-diagnostics

// expected-error @below {{matched function 'sched_yield' but with different type: '(index) -> index' (expected '() -> i32')}}
func.func @sched_yield(%x: index) -> index {
  return %x : index
}

func.func @await(%counters: memref<?xi32>, %i: index, %turn: i32) {
  // expected-error @below {{calls sched_yield of POSIX, and another function has that name: give it another}}
  tile.await %counters[%i] is %turn : memref<?xi32>
  return
}
