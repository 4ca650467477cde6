// RUN: burst-opt %examples/tiny.mlir --burst-to-ring=fuse=false -o %t
// RUN: sed 's/ring.segment %c0 of <zigzag over 4>.%arg3. extent %arg1/ring.segment %c0 of <zigzag over 4>[%arg1] extent %arg3/' %t >%t.wrong
// RUN: not cmp -s %t %t.wrong
// RUN: not burst-opt %t.wrong --ring-verify 2>&1 | FileCheck %s

// A segment that a called function cannot ask for is refused there: what is known
// of the ops of a rank's program is not of those of the functions that it calls.
//
// CHECK: error: 'ring.segment' op schedule refused: {{.*}}names rank 64 as owner, of 4 ranks
