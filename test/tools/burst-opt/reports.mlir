// A pass that reports replaces the module on the standard output; where a file is
// named, the module goes there.
//
// RUN: burst-opt %s --burst-explain | FileCheck %s --implicit-check-not=func.func
// RUN: burst-opt %s -burst-explain=max-ranks=1 | FileCheck %s --implicit-check-not=func.func
// RUN: burst-opt %s --burst-explain -o %t | FileCheck %s --implicit-check-not=func.func
// RUN: FileCheck %s --check-prefix=MODULE < %t
// RUN: burst-opt %s --burst-explain --o=%t.2 | FileCheck %s --implicit-check-not=func.func
// RUN: FileCheck %s --check-prefix=MODULE < %t.2
// RUN: burst-opt %s --burst-explain -o - | FileCheck %s --check-prefixes=CHECK,MODULE
// RUN: burst-opt %s --burst-partition | FileCheck %s --check-prefix=PARTITIONED

// CHECK: program @f, 2 ranks
// MODULE: func.func @f(%arg0: tensor<1x8x1x4xf32>)
// PARTITIONED: func.func @f(%arg0: tensor<1x4x1x4xf32> {ring.shard

// Every pass and pipeline is there, by its name.
//
// RUN: burst-opt --help | FileCheck %s --check-prefix=PASSES
// PASSES-DAG: --burst-choose-strategy
// PASSES-DAG: --burst-derive-bounds
// PASSES-DAG: --burst-expand-names
// PASSES-DAG: --burst-explain
// PASSES-DAG: --burst-lower-to-ring
// PASSES-DAG: --burst-partition
// PASSES-DAG: --burst-to-ring
// PASSES-DAG: --burst-verify-expanded
// PASSES-DAG: --burst-verify-partitioned
// PASSES-DAG: --ring-drop-empty
// PASSES-DAG: --ring-interpret
// PASSES-DAG: --ring-lower-rotate
// PASSES-DAG: --ring-overlap
// PASSES-DAG: --ring-plan
// PASSES-DAG: --ring-verify

// RUN: burst-opt --show-dialects | FileCheck %s --check-prefix=DIALECTS
// DIALECTS: arith,builtin,burst,cuda,dlti,func,gpu,llvm,math,memref,ring,scf,shard,tensor,tile,vector

shard.grid @cp(shape = 2)

func.func @f(%q: tensor<1x8x1x4xf32>) -> tensor<1x8x1x4xf32> {
  %o, %lse = burst.attention %q, %q, %q sequence <@cp, zigzag>
      : (tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>, tensor<1x8x1x4xf32>)
      -> (tensor<1x8x1x4xf32>, tensor<1x1x8xf32>)
  return %o : tensor<1x8x1x4xf32>
}
