// Programs that are right, and of which the proof must not take long, whether it proves
// them for every number of ranks or leaves that to the simulation.

// RUN: burst-opt %s --split-input-file --ring-verify=allow-needless --remarks-filter=ring-verify -o /dev/null 2>&1 | FileCheck %s

// Of two of them something is sent that is not needed.
//
// RUN: not burst-opt %s --split-input-file --ring-verify -o /dev/null 2>&1 | FileCheck %s --check-prefix=NEEDLESS
// NEEDLESS-COUNT-2: error: 'ring.start' op schedule refused: {{.*}}, and neither
// NEEDLESS-NOT: error:

// The twin of one that is refused, with a direction that is one: nothing checks it.
// CHECK: schedule-proved{{.*}}proved="for these ranks, sizes and tables"
module {
  shard.grid @cp(shape = 5)
  func.func private @needs() -> (tensor<5x5x1x1xi1>, tensor<5x1xindex>, index) {
    %c0 = arith.constant 0 : index
    %true = arith.constant true
    %g = tensor.generate {
    ^bb0(%a: index, %b: index, %c: index, %d: index):
      tensor.yield %true : i1
    } : tensor<5x5x1x1xi1>
    %r = tensor.generate {
    ^bb0(%a: index, %b: index):
      tensor.yield %c0 : index
    } : tensor<5x1xindex>
    %s = arith.constant 4 : index
    return %g, %r, %s : tensor<5x5x1x1xi1>, tensor<5x1xindex>, index
  }
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %N:3 = call @needs() : () -> (tensor<5x5x1x1xi1>, tensor<5x1xindex>, index)
    %c5s = arith.subi %c5, %N#2 : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %N#2 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c5s : index
    %3 = arith.remui %2, %c5 : index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c5s : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 pairs(%N#0 : tensor<5x5x1x1xi1>) scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 pairs(%N#0 : tensor<5x5x1x1xi1>) scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// Nothing wraps around.
// CHECK: schedule-proved{{.*}}proved="for every number of ranks"
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %cst = arith.constant dense<false> : tensor<1x1x1xi1>
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %generated = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index, %arg5: index):
      %9 = arith.cmpi ne, %arg4, %c0 : index
      %10 = arith.cmpi ult, %arg4, %c5 : index
      %11 = arith.andi %9, %10 : i1
      tensor.yield %11 : i1
    } : tensor<1x6x1xi1>
    %generated_0 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index, %arg5: index):
      %9 = arith.cmpi ugt, %arg4, %c1 : index
      %10 = arith.cmpi ult, %arg4, %c5 : index
      %11 = arith.andi %9, %10 : i1
      tensor.yield %11 : i1
    } : tensor<1x6x1xi1>
    %generated_1 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index, %arg5: index):
      %9 = arith.cmpi ugt, %arg4, %c1 : index
      %10 = arith.cmpi eq, %arg4, %c5 : index
      %11 = arith.andi %9, %10 : i1
      tensor.yield %11 : i1
    } : tensor<1x6x1xi1>
    %generated_2 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index, %arg5: index):
      %9 = arith.cmpi eq, %arg4, %c0 : index
      tensor.yield %9 : i1
    } : tensor<1x5x1xi1>
    %4 = ring.start %o, %m, %l dims [1, 2, 2] of <contiguous over 5>[%proc_linear_idx] extent %c60 to %1 receive[%3] from %3 segments(%cst[%c0] : tensor<1x1x1xi1>) channel <@cp, 1> : (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) -> !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
    %5 = ring.start %o, %m, %l dims [1, 2, 2] of <contiguous over 5>[%proc_linear_idx] extent %c60 to %proc_linear_idx receive[%proc_linear_idx] from %proc_linear_idx segments(%cst[%c0] : tensor<1x1x1xi1>) channel <@cp, 1> : (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) -> !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
    %6:7 = scf.for %arg3 = %c0 to %c5 step %c1 iter_args(%arg4 = %arg0, %arg5 = %proc_linear_idx, %arg6 = %o, %arg7 = %m, %arg8 = %l, %arg9 = %4, %arg10 = %5) -> (tensor<1x12x4x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>, !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>, !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>) {
      %9 = arith.addi %arg5, %c4 : index
      %10 = arith.remui %9, %c5 : index
      %11 = arith.addi %arg3, %c1 : index
      %wm = arith.addi %arg5, %c4 : index
      %w = arith.remui %wm, %c5 : index
      %gen2 = tensor.generate {
      ^bb0(%x3: index, %x4: index, %x5: index):
        %y9 = arith.cmpi ugt, %x4, %c1 : index
        %y10 = arith.cmpi ult, %x4, %c5 : index
        %ok = arith.cmpi eq, %w, %10 : index
        %y11 = arith.andi %y9, %y10 : i1
        %y12 = arith.andi %y11, %ok : i1
        tensor.yield %y12 : i1
      } : tensor<1x6x1xi1>
      %12 = ring.start %arg4 dims [1] of <contiguous over 5>[%arg5] extent %c60 to %1 receive[%10] from %3 segments(%generated[%11] : tensor<1x6x1xi1>) channel <@cp, 0> : (tensor<1x12x4x16xf32>) -> !ring.token<tensor<1x12x4x16xf32>>
      %o_6, %m_7, %l_8 = ring.init %arg4 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
      %o_9, %m_10, %l_11 = ring.attend %arg4 at <contiguous over 5>[%arg5] extent %c60
          slice (%arg1, %arg2 at %proc_linear_idx) of <contiguous over 5> extent %c60
          state %o_6, %m_7, %l_8 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %13 = ring.wait %12 : !ring.token<tensor<1x12x4x16xf32>>
      %14:3 = ring.wait %arg10 : !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
      %o_12, %m_13, %l_14 = ring.merge(%arg6, %arg7, %arg8) with(%14#0, %14#1, %14#2) of <contiguous over 5>[%proc_linear_idx] extent %c60 segments(%generated_1[%arg3] : tensor<1x6x1xi1>) : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
      %o_15, %m_16, %l_17 = ring.merge(%o_12, %m_13, %l_14) with(%o_9, %m_10, %l_11) of <contiguous over 5>[%proc_linear_idx] extent %c60 segments(%generated_2[%arg3] : tensor<1x5x1xi1>) : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
      %15:3 = ring.wait %arg9 : !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
      %o_18, %m_19, %l_20 = ring.merge(%o_9, %m_10, %l_11) with(%15#0, %15#1, %15#2) of <contiguous over 5>[%arg5] extent %c60 segments(%generated_0[%arg3] : tensor<1x6x1xi1>) : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
      %16 = ring.start %o_18, %m_19, %l_20 dims [1, 2, 2] of <contiguous over 5>[%arg5] extent %c60 to %1 receive[%10] from %3 segments(%gen2[%11] : tensor<1x6x1xi1>) channel <@cp, 1> : (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) -> !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
      %17 = arith.addi %proc_linear_idx, %c5 : index
      %18 = arith.subi %17, %arg5 : index
      %19 = arith.addi %proc_linear_idx, %18 : index
      %20 = arith.remui %19, %c5 : index
      %21 = ring.start %o_18, %m_19, %l_20 dims [1, 2, 2] of <contiguous over 5>[%arg5] extent %c60 to %arg5 receive[%proc_linear_idx] from %20 segments(%generated_1[%11] : tensor<1x6x1xi1>) channel <@cp, 1> : (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) -> !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
      scf.yield %13, %10, %o_15, %m_16, %l_17, %16, %21 : tensor<1x12x4x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>, !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>, !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
    }
    %7:3 = ring.wait %6#5 : !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
    %8:3 = ring.wait %6#6 : !ring.token<tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>>
    %o_3, %m_4, %l_5 = ring.merge(%6#2, %6#3, %6#4) with(%8#0, %8#1, %8#2) of <contiguous over 5>[%proc_linear_idx] extent %c60 segments(%generated_1[%c5] : tensor<1x6x1xi1>) : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %out, %lse = ring.finalize %o_3, %m_4, %l_5 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A remainder of what is two milliard ranks away.
// CHECK: schedule-proved{{.*}}proved="for these ranks, sizes and tables"
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %big = arith.constant 2000000000 : index
    %ba = arith.addi %proc_linear_idx, %big : index
    %0 = arith.addi %ba, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A table of hops of fewer segments than travel.
// CHECK: schedule-proved{{.*}}proved="for these ranks, sizes and tables"
module {
  shard.grid @cp(shape = 4)
  func.func private @tiny_needs(%arg0: index, %arg1: index, %arg2: index) -> (tensor<4x4x2x2xi1>, tensor<4x1xindex>, index) {
    %c3 = arith.constant 3 : index
    %true = arith.constant true
    %c4 = arith.constant 4 : index
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %generated = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index, %arg5: index, %arg6: index):
      %begin, %end, %count, %step, %block = ring.segment %arg5 of <zigzag over 4>[%arg3] extent %arg0
      %4 = arith.cmpi eq, %count, %c0 : index
      %5 = arith.select %4, %c1, %end : index
      %begin_3, %end_4, %count_5, %step_6, %block_7 = ring.segment %arg6 of <zigzag over 4>[%arg4] extent %arg1
      %6 = arith.cmpi eq, %count_5, %c0 : index
      %7 = arith.select %6, %c0, %begin_3 : index
      %8 = arith.subi %5, %c1 : index
      %9 = arith.cmpi sle, %7, %8 : index
      %10 = arith.ori %4, %6 : i1
      %11 = arith.xori %10, %true : i1
      %12 = arith.andi %11, %9 : i1
      tensor.yield %12 : i1
    } : tensor<4x4x2x2xi1>
    %generated_0 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index):
      %4 = scf.for %arg5 = %c1 to %c4 step %c1 iter_args(%arg6 = %c0) -> (index) {
        %5 = arith.addi %arg3, %arg5 : index
        %6 = arith.remui %5, %c4 : index
        %extracted = tensor.extract %generated[%6, %arg3, %c0, %arg4] : tensor<4x4x2x2xi1>
        %extracted_3 = tensor.extract %generated[%6, %arg3, %c1, %arg4] : tensor<4x4x2x2xi1>
        %7 = arith.ori %extracted, %extracted_3 : i1
        %8 = arith.select %7, %arg5, %arg6 : index
        scf.yield %8 : index
      }
      tensor.yield %4 : index
    } : tensor<4x2xindex>
    %generated_1 = tensor.generate  {
    ^bb0(%arg3: index, %arg4: index):
      %4 = scf.for %arg5 = %c1 to %c4 step %c1 iter_args(%arg6 = %c0) -> (index) {
        %5 = arith.muli %arg5, %c3 : index
        %6 = arith.addi %arg3, %5 : index
        %7 = arith.remui %6, %c4 : index
        %extracted = tensor.extract %generated[%7, %arg3, %c0, %arg4] : tensor<4x4x2x2xi1>
        %extracted_3 = tensor.extract %generated[%7, %arg3, %c1, %arg4] : tensor<4x4x2x2xi1>
        %8 = arith.ori %extracted, %extracted_3 : i1
        %9 = arith.select %8, %arg5, %arg6 : index
        scf.yield %9 : index
      }
      tensor.yield %4 : index
    } : tensor<4x2xindex>
    %0 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %c0) -> (index) {
      %begin, %end, %count, %step, %block = ring.segment %c0 of <zigzag over 4>[%arg3] extent %arg1
      %extracted = tensor.extract %generated_1[%arg3, %c0] : tensor<4x2xindex>
      %4 = arith.muli %count, %extracted : index
      %5 = arith.addi %arg4, %4 : index
      %begin_3, %end_4, %count_5, %step_6, %block_7 = ring.segment %c1 of <zigzag over 4>[%arg3] extent %arg1
      %extracted_8 = tensor.extract %generated_1[%arg3, %c1] : tensor<4x2xindex>
      %6 = arith.muli %count_5, %extracted_8 : index
      %7 = arith.addi %5, %6 : index
      scf.yield %7 : index
    }
    %1 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %c0) -> (index) {
      %begin, %end, %count, %step, %block = ring.segment %c0 of <zigzag over 4>[%arg3] extent %arg1
      %extracted = tensor.extract %generated_0[%arg3, %c0] : tensor<4x2xindex>
      %4 = arith.muli %count, %extracted : index
      %5 = arith.addi %arg4, %4 : index
      %begin_3, %end_4, %count_5, %step_6, %block_7 = ring.segment %c1 of <zigzag over 4>[%arg3] extent %arg1
      %extracted_8 = tensor.extract %generated_0[%arg3, %c1] : tensor<4x2xindex>
      %6 = arith.muli %count_5, %extracted_8 : index
      %7 = arith.addi %5, %6 : index
      scf.yield %7 : index
    }
    %2 = arith.cmpi ult, %0, %1 : index
    %generated_2 = tensor.generate {
    ^bb0(%x: index, %y: index):
      tensor.yield %c3 : index
    } : tensor<4x1xindex>
    %3 = arith.select %2, %c3, %c1 : index
    return %generated, %generated_2, %3 : tensor<4x4x2x2xi1>, tensor<4x1xindex>, index
  }
  func.func private @tiny_slices(%arg0: tensor<4x1xindex>) -> tensor<4x5x2xi1> {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %generated = tensor.generate  {
    ^bb0(%arg1: index, %arg2: index, %arg3: index):
      %extracted = tensor.extract %arg0[%arg1, %c0] : tensor<4x1xindex>
      %0 = arith.addi %extracted, %c1 : index
      %1 = arith.cmpi ne, %arg2, %c0 : index
      %2 = arith.cmpi ult, %arg2, %0 : index
      %3 = arith.andi %1, %2 : i1
      tensor.yield %3 : i1
    } : tensor<4x5x2xi1>
    return %generated : tensor<4x5x2xi1>
  }
  func.func @tiny(%arg0: tensor<1x16x4x16xf32> {burst.name = "q", ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 64>}, %arg1: tensor<1x16x2x16xf32> {burst.name = "k", ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 64>}, %arg2: tensor<1x16x2x16xf32> {burst.name = "v", ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 64>}) -> (tensor<1x16x4x16xf32> {burst.name = "o", ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 64>}, tensor<1x4x16xf32> {burst.name = "lse", ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 2 extent 64>}) attributes {ring.grid = @cp} {
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %c0 = arith.constant 0 : index
    %0:3 = call @tiny_needs(%c64, %c64, %c1) : (index, index, index) -> (tensor<4x4x2x2xi1>, tensor<4x1xindex>, index)
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x16x4x16xf32> -> tensor<1x16x4x16xf32>, tensor<1x4x16xf32>
    %1 = arith.addi %proc_linear_idx, %0#2 : index
    %2 = arith.remui %1, %c4 : index
    %3 = arith.subi %c4, %0#2 : index
    %4 = arith.addi %proc_linear_idx, %3 : index
    %5 = arith.remui %4, %c4 : index
    %6 = call @tiny_slices(%0#1) : (tensor<4x1xindex>) -> tensor<4x5x2xi1>
    %7:6 = scf.for %arg3 = %c0 to %c3 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x16x2x16xf32>, tensor<1x16x2x16xf32>, index, tensor<1x16x4x16xf32>, tensor<1x4x16xf32>, tensor<1x4x16xf32>) {
      %8 = arith.addi %arg6, %3 : index
      %9 = arith.remui %8, %c4 : index
      %10 = arith.addi %arg3, %c1 : index
      %11 = ring.start %arg4, %arg5 dims [1, 1] of <zigzag over 4>[%arg6] extent %c64 to %2 receive[%9] from %5 segments(%6[%10] : tensor<4x5x2xi1>) channel <@cp, 0> : (tensor<1x16x2x16xf32>, tensor<1x16x2x16xf32>) -> !ring.token<tensor<1x16x2x16xf32>, tensor<1x16x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <zigzag over 4>[%proc_linear_idx] extent %c64
          slice (%arg4, %arg5 at %arg6) of <zigzag over 4> extent %c64
          state %arg7, %arg8, %arg9 pairs(%0#0 : tensor<4x4x2x2xi1>) scale 2.500000e-01
          mask(%b, %h, %i, %j, %sq, %sk) {
            %13 = arith.subi %sk, %sq : index
            %14 = arith.addi %i, %13 : index
            %15 = arith.cmpi sle, %j, %14 : index
            burst.yield %15 : i1
          }
          bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
            %c1_6 = arith.constant 1 : index
            %13 = arith.subi %i1, %c1_6 : index
            %14 = arith.subi %j1, %c1_6 : index
            %15 = arith.cmpi sle, %j0, %13 : index
            %16 = arith.cmpi sle, %14, %i0 : index
            burst.yield %15, %16 : i1, i1
          }
          : (tensor<1x16x4x16xf32>, tensor<1x16x2x16xf32>, tensor<1x16x2x16xf32>) -> (tensor<1x16x4x16xf32>, tensor<1x4x16xf32>)
      %12:2 = ring.wait %11 : !ring.token<tensor<1x16x2x16xf32>, tensor<1x16x2x16xf32>>
      scf.yield %12#0, %12#1, %9, %o_3, %m_4, %l_5 : tensor<1x16x2x16xf32>, tensor<1x16x2x16xf32>, index, tensor<1x16x4x16xf32>, tensor<1x4x16xf32>, tensor<1x4x16xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <zigzag over 4>[%proc_linear_idx] extent %c64
        slice (%7#0, %7#1 at %7#2) of <zigzag over 4> extent %c64
        state %7#3, %7#4, %7#5 pairs(%0#0 : tensor<4x4x2x2xi1>) scale 2.500000e-01
        mask(%b, %h, %i, %j, %sq, %sk) {
          %8 = arith.subi %sk, %sq : index
          %9 = arith.addi %i, %8 : index
          %10 = arith.cmpi sle, %j, %9 : index
          burst.yield %10 : i1
        }
        bounds(%b0, %b1, %h0, %h1, %i0, %i1, %j0, %j1, %sq, %sk) {
          %c1_3 = arith.constant 1 : index
          %8 = arith.subi %i1, %c1_3 : index
          %9 = arith.subi %j1, %c1_3 : index
          %10 = arith.cmpi sle, %j0, %8 : index
          %11 = arith.cmpi sle, %9, %i0 : index
          burst.yield %10, %11 : i1, i1
        }
        : (tensor<1x16x4x16xf32>, tensor<1x16x2x16xf32>, tensor<1x16x2x16xf32>) -> (tensor<1x16x4x16xf32>, tensor<1x4x16xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x16x4x16xf32>, tensor<1x4x16xf32> -> tensor<1x16x4x16xf32>
    return %out, %lse : tensor<1x16x4x16xf32>, tensor<1x4x16xf32>
  }
}

// -----

// Forty sums of a value with itself, of which a path of ops has two to the fortieth.
// CHECK: schedule-proved{{.*}}proved="for every number of ranks"
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %ch0 = arith.remui %0, %c5 : index
    %ch1 = arith.addi %ch0, %ch0 : index
    %ch2 = arith.addi %ch1, %ch1 : index
    %ch3 = arith.addi %ch2, %ch2 : index
    %ch4 = arith.addi %ch3, %ch3 : index
    %ch5 = arith.addi %ch4, %ch4 : index
    %ch6 = arith.addi %ch5, %ch5 : index
    %ch7 = arith.addi %ch6, %ch6 : index
    %ch8 = arith.addi %ch7, %ch7 : index
    %ch9 = arith.addi %ch8, %ch8 : index
    %ch10 = arith.addi %ch9, %ch9 : index
    %ch11 = arith.addi %ch10, %ch10 : index
    %ch12 = arith.addi %ch11, %ch11 : index
    %ch13 = arith.addi %ch12, %ch12 : index
    %ch14 = arith.addi %ch13, %ch13 : index
    %ch15 = arith.addi %ch14, %ch14 : index
    %ch16 = arith.addi %ch15, %ch15 : index
    %ch17 = arith.addi %ch16, %ch16 : index
    %ch18 = arith.addi %ch17, %ch17 : index
    %ch19 = arith.addi %ch18, %ch18 : index
    %ch20 = arith.addi %ch19, %ch19 : index
    %ch21 = arith.addi %ch20, %ch20 : index
    %ch22 = arith.addi %ch21, %ch21 : index
    %ch23 = arith.addi %ch22, %ch22 : index
    %ch24 = arith.addi %ch23, %ch23 : index
    %ch25 = arith.addi %ch24, %ch24 : index
    %ch26 = arith.addi %ch25, %ch25 : index
    %ch27 = arith.addi %ch26, %ch26 : index
    %ch28 = arith.addi %ch27, %ch27 : index
    %ch29 = arith.addi %ch28, %ch28 : index
    %ch30 = arith.addi %ch29, %ch29 : index
    %ch31 = arith.addi %ch30, %ch30 : index
    %ch32 = arith.addi %ch31, %ch31 : index
    %ch33 = arith.addi %ch32, %ch32 : index
    %ch34 = arith.addi %ch33, %ch33 : index
    %ch35 = arith.addi %ch34, %ch34 : index
    %ch36 = arith.addi %ch35, %ch35 : index
    %ch37 = arith.addi %ch36, %ch36 : index
    %ch38 = arith.addi %ch37, %ch37 : index
    %ch39 = arith.addi %ch38, %ch38 : index
    %ch40 = arith.addi %ch39, %ch39 : index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// The same, given to a function.
// CHECK: schedule-proved{{.*}}proved="for every number of ranks"
module {
  shard.grid @cp(shape = 5)
  func.func private @id(%x: index) -> index {
 return %x : index
 }
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %ch0 = arith.addi %c1, %c1 : index
    %ch1 = arith.addi %ch0, %ch0 : index
    %ch2 = arith.addi %ch1, %ch1 : index
    %ch3 = arith.addi %ch2, %ch2 : index
    %ch4 = arith.addi %ch3, %ch3 : index
    %ch5 = arith.addi %ch4, %ch4 : index
    %ch6 = arith.addi %ch5, %ch5 : index
    %ch7 = arith.addi %ch6, %ch6 : index
    %ch8 = arith.addi %ch7, %ch7 : index
    %ch9 = arith.addi %ch8, %ch8 : index
    %ch10 = arith.addi %ch9, %ch9 : index
    %ch11 = arith.addi %ch10, %ch10 : index
    %ch12 = arith.addi %ch11, %ch11 : index
    %ch13 = arith.addi %ch12, %ch12 : index
    %ch14 = arith.addi %ch13, %ch13 : index
    %ch15 = arith.addi %ch14, %ch14 : index
    %ch16 = arith.addi %ch15, %ch15 : index
    %ch17 = arith.addi %ch16, %ch16 : index
    %ch18 = arith.addi %ch17, %ch17 : index
    %ch19 = arith.addi %ch18, %ch18 : index
    %ch20 = arith.addi %ch19, %ch19 : index
    %ch21 = arith.addi %ch20, %ch20 : index
    %ch22 = arith.addi %ch21, %ch21 : index
    %ch23 = arith.addi %ch22, %ch22 : index
    %ch24 = arith.addi %ch23, %ch23 : index
    %ch25 = arith.addi %ch24, %ch24 : index
    %ch26 = arith.addi %ch25, %ch25 : index
    %ch27 = arith.addi %ch26, %ch26 : index
    %ch28 = arith.addi %ch27, %ch27 : index
    %ch29 = arith.addi %ch28, %ch28 : index
    %ch30 = arith.addi %ch29, %ch29 : index
    %ch31 = arith.addi %ch30, %ch30 : index
    %ch32 = arith.addi %ch31, %ch31 : index
    %ch33 = arith.addi %ch32, %ch32 : index
    %ch34 = arith.addi %ch33, %ch33 : index
    %ch35 = arith.addi %ch34, %ch34 : index
    %ch36 = arith.addi %ch35, %ch35 : index
    %ch37 = arith.addi %ch36, %ch36 : index
    %ch38 = arith.addi %ch37, %ch37 : index
    %ch39 = arith.addi %ch38, %ch38 : index
    %ch40 = arith.addi %ch39, %ch39 : index
    %cc = call @id(%ch40) : (index) -> index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// The same, in the region of a table.
// CHECK: schedule-proved{{.*}}proved="for these ranks, sizes and tables"
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %gen = tensor.generate {
    ^bb0(%ch0: index, %ta: index, %sa: index):
    %ch1 = arith.addi %ch0, %ch0 : index
    %ch2 = arith.addi %ch1, %ch1 : index
    %ch3 = arith.addi %ch2, %ch2 : index
    %ch4 = arith.addi %ch3, %ch3 : index
    %ch5 = arith.addi %ch4, %ch4 : index
    %ch6 = arith.addi %ch5, %ch5 : index
    %ch7 = arith.addi %ch6, %ch6 : index
    %ch8 = arith.addi %ch7, %ch7 : index
    %ch9 = arith.addi %ch8, %ch8 : index
    %ch10 = arith.addi %ch9, %ch9 : index
    %ch11 = arith.addi %ch10, %ch10 : index
    %ch12 = arith.addi %ch11, %ch11 : index
    %ch13 = arith.addi %ch12, %ch12 : index
    %ch14 = arith.addi %ch13, %ch13 : index
    %ch15 = arith.addi %ch14, %ch14 : index
    %ch16 = arith.addi %ch15, %ch15 : index
    %ch17 = arith.addi %ch16, %ch16 : index
    %ch18 = arith.addi %ch17, %ch17 : index
    %ch19 = arith.addi %ch18, %ch18 : index
    %ch20 = arith.addi %ch19, %ch19 : index
    %ch21 = arith.addi %ch20, %ch20 : index
    %ch22 = arith.addi %ch21, %ch21 : index
    %ch23 = arith.addi %ch22, %ch22 : index
    %ch24 = arith.addi %ch23, %ch23 : index
    %ch25 = arith.addi %ch24, %ch24 : index
    %ch26 = arith.addi %ch25, %ch25 : index
    %ch27 = arith.addi %ch26, %ch26 : index
    %ch28 = arith.addi %ch27, %ch27 : index
    %ch29 = arith.addi %ch28, %ch28 : index
    %ch30 = arith.addi %ch29, %ch29 : index
    %ch31 = arith.addi %ch30, %ch30 : index
    %ch32 = arith.addi %ch31, %ch31 : index
    %ch33 = arith.addi %ch32, %ch32 : index
    %ch34 = arith.addi %ch33, %ch33 : index
    %ch35 = arith.addi %ch34, %ch34 : index
    %ch36 = arith.addi %ch35, %ch35 : index
    %ch37 = arith.addi %ch36, %ch36 : index
    %ch38 = arith.addi %ch37, %ch37 : index
    %ch39 = arith.addi %ch38, %ch38 : index
    %ch40 = arith.addi %ch39, %ch39 : index
    %f = arith.cmpi sge, %ch40, %c0 : index
 tensor.yield %f : i1
} : tensor<5x5x1xi1>
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 segments(%gen[%arg3] : tensor<5x5x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// A gather, in a loop, of a state that its turn has made.
// CHECK: schedule-proved{{.*}}proved="for these ranks, sizes and tables"
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %fl = arith.constant dense<true> : tensor<1x5x1xi1>
      %tk = ring.start %o_3 dims [1] of <contiguous over 5>[%proc_linear_idx] extent %c60 all_gather segments(%fl : tensor<1x5x1xi1>) channel <@cp, 1> : (tensor<1x12x4x16xf32>) -> !ring.token<tensor<1x60x4x16xf32>>
      %gg = ring.wait %tk : !ring.token<tensor<1x60x4x16xf32>>
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// Of a carried index a difference of sums, 32 times.
// CHECK: schedule-proved{{.*}}proved="for every number of ranks"
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %d0 = arith.addi %arg6, %arg6 : index
      %e0 = arith.subi %d0, %arg6 : index
      %d1 = arith.addi %e0, %e0 : index
      %e1 = arith.subi %d1, %e0 : index
      %d2 = arith.addi %e1, %e1 : index
      %e2 = arith.subi %d2, %e1 : index
      %d3 = arith.addi %e2, %e2 : index
      %e3 = arith.subi %d3, %e2 : index
      %d4 = arith.addi %e3, %e3 : index
      %e4 = arith.subi %d4, %e3 : index
      %d5 = arith.addi %e4, %e4 : index
      %e5 = arith.subi %d5, %e4 : index
      %d6 = arith.addi %e5, %e5 : index
      %e6 = arith.subi %d6, %e5 : index
      %d7 = arith.addi %e6, %e6 : index
      %e7 = arith.subi %d7, %e6 : index
      %d8 = arith.addi %e7, %e7 : index
      %e8 = arith.subi %d8, %e7 : index
      %d9 = arith.addi %e8, %e8 : index
      %e9 = arith.subi %d9, %e8 : index
      %d10 = arith.addi %e9, %e9 : index
      %e10 = arith.subi %d10, %e9 : index
      %d11 = arith.addi %e10, %e10 : index
      %e11 = arith.subi %d11, %e10 : index
      %d12 = arith.addi %e11, %e11 : index
      %e12 = arith.subi %d12, %e11 : index
      %d13 = arith.addi %e12, %e12 : index
      %e13 = arith.subi %d13, %e12 : index
      %d14 = arith.addi %e13, %e13 : index
      %e14 = arith.subi %d14, %e13 : index
      %d15 = arith.addi %e14, %e14 : index
      %e15 = arith.subi %d15, %e14 : index
      %d16 = arith.addi %e15, %e15 : index
      %e16 = arith.subi %d16, %e15 : index
      %d17 = arith.addi %e16, %e16 : index
      %e17 = arith.subi %d17, %e16 : index
      %d18 = arith.addi %e17, %e17 : index
      %e18 = arith.subi %d18, %e17 : index
      %d19 = arith.addi %e18, %e18 : index
      %e19 = arith.subi %d19, %e18 : index
      %d20 = arith.addi %e19, %e19 : index
      %e20 = arith.subi %d20, %e19 : index
      %d21 = arith.addi %e20, %e20 : index
      %e21 = arith.subi %d21, %e20 : index
      %d22 = arith.addi %e21, %e21 : index
      %e22 = arith.subi %d22, %e21 : index
      %d23 = arith.addi %e22, %e22 : index
      %e23 = arith.subi %d23, %e22 : index
      %d24 = arith.addi %e23, %e23 : index
      %e24 = arith.subi %d24, %e23 : index
      %d25 = arith.addi %e24, %e24 : index
      %e25 = arith.subi %d25, %e24 : index
      %d26 = arith.addi %e25, %e25 : index
      %e26 = arith.subi %d26, %e25 : index
      %d27 = arith.addi %e26, %e26 : index
      %e27 = arith.subi %d27, %e26 : index
      %d28 = arith.addi %e27, %e27 : index
      %e28 = arith.subi %d28, %e27 : index
      %d29 = arith.addi %e28, %e28 : index
      %e29 = arith.subi %d29, %e28 : index
      %d30 = arith.addi %e29, %e29 : index
      %e30 = arith.subi %d30, %e29 : index
      %d31 = arith.addi %e30, %e30 : index
      %e31 = arith.subi %d31, %e30 : index
      %5 = arith.addi %e31, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// Flags of flags, 26 times.
// CHECK: schedule-proved{{.*}}proved="for these ranks, sizes and tables"
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %tb = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = arith.cmpi eq, %oa, %c0 : index
      %y = arith.cmpi eq, %ta, %c0 : index
      %x1 = arith.xori %x0, %y : i1
      %x2 = arith.xori %x1, %y : i1
      %x3 = arith.xori %x2, %y : i1
      %x4 = arith.xori %x3, %y : i1
      %x5 = arith.xori %x4, %y : i1
      %x6 = arith.xori %x5, %y : i1
      %x7 = arith.xori %x6, %y : i1
      %x8 = arith.xori %x7, %y : i1
      %x9 = arith.xori %x8, %y : i1
      %x10 = arith.xori %x9, %y : i1
      %x11 = arith.xori %x10, %y : i1
      %x12 = arith.xori %x11, %y : i1
      %x13 = arith.xori %x12, %y : i1
      %x14 = arith.xori %x13, %y : i1
      %x15 = arith.xori %x14, %y : i1
      %x16 = arith.xori %x15, %y : i1
      %x17 = arith.xori %x16, %y : i1
      %x18 = arith.xori %x17, %y : i1
      %x19 = arith.xori %x18, %y : i1
      %x20 = arith.xori %x19, %y : i1
      %x21 = arith.xori %x20, %y : i1
      %x22 = arith.xori %x21, %y : i1
      %x23 = arith.xori %x22, %y : i1
      %x24 = arith.xori %x23, %y : i1
      %x25 = arith.xori %x24, %y : i1
      %x26 = arith.xori %x25, %y : i1
      %tt = arith.constant true
      %q = arith.ori %x26, %tt : i1
      tensor.yield %q : i1
    } : tensor<5x5x1xi1>
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 segments(%tb[%arg3] : tensor<5x5x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}

// -----

// Tables of tables, 24 of them.
// CHECK: schedule-proved{{.*}}proved="for these ranks, sizes and tables"
module {
  shard.grid @cp(shape = 5)
  func.func @full(%arg0: tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg1: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, %arg2: tensor<1x12x2x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}) -> (tensor<1x12x4x16xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 1 extent 60>}, tensor<1x4x12xf32> {ring.shard = #ring.shard<#ring.layout<contiguous over 5>, dim 2 extent 60>}) attributes {ring.grid = @cp} {
    %c0 = arith.constant 0 : index
    %c4 = arith.constant 4 : index
    %c5 = arith.constant 5 : index
    %c1 = arith.constant 1 : index
    %c60 = arith.constant 60 : index
    %proc_linear_idx = shard.process_multi_index on @cp axes = [0] : index
    %o, %m, %l = ring.init %arg0 : tensor<1x12x4x16xf32> -> tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
    %0 = arith.addi %proc_linear_idx, %c1 : index
    %1 = arith.remui %0, %c5 : index
    %2 = arith.addi %proc_linear_idx, %c4 : index
    %3 = arith.remui %2, %c5 : index
    %t0 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = arith.cmpi sge, %oa, %c0 : index
      tensor.yield %x0 : i1
    } : tensor<5x5x1xi1>
    %t1 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t0[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t0[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t2 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t1[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t1[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t3 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t2[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t2[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t4 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t3[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t3[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t5 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t4[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t4[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t6 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t5[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t5[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t7 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t6[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t6[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t8 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t7[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t7[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t9 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t8[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t8[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t10 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t9[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t9[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t11 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t10[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t10[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t12 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t11[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t11[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t13 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t12[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t12[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t14 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t13[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t13[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t15 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t14[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t14[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t16 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t15[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t15[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t17 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t16[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t16[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t18 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t17[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t17[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t19 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t18[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t18[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t20 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t19[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t19[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t21 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t20[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t20[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t22 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t21[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t21[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t23 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t22[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t22[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %t24 = tensor.generate {
    ^bb0(%oa: index, %ta: index, %sa: index):
      %x0 = tensor.extract %t23[%oa, %ta, %sa] : tensor<5x5x1xi1>
      %x1 = tensor.extract %t23[%oa, %c0, %sa] : tensor<5x5x1xi1>
      %x2 = arith.ori %x0, %x1 : i1
      tensor.yield %x2 : i1
    } : tensor<5x5x1xi1>
    %4:6 = scf.for %arg3 = %c0 to %c4 step %c1 iter_args(%arg4 = %arg1, %arg5 = %arg2, %arg6 = %proc_linear_idx, %arg7 = %o, %arg8 = %m, %arg9 = %l) -> (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>) {
      %5 = arith.addi %arg6, %c4 : index
      %6 = arith.remui %5, %c5 : index
      %7 = ring.start %arg4, %arg5 dims [1, 1] of <contiguous over 5>[%arg6] extent %c60 to %1 receive[%6] from %3 segments(%t24[%arg3] : tensor<5x5x1xi1>) channel <@cp, 0> : (tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      %o_3, %m_4, %l_5 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
          slice (%arg4, %arg5 at %arg6) of <contiguous over 5> extent %c60
          state %arg7, %arg8, %arg9 scale 2.500000e-01
          : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
      %8:2 = ring.wait %7 : !ring.token<tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>>
      scf.yield %8#0, %8#1, %6, %o_3, %m_4, %l_5 : tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>, index, tensor<1x12x4x16xf32>, tensor<1x4x12xf32>, tensor<1x4x12xf32>
    }
    %o_0, %m_1, %l_2 = ring.attend %arg0 at <contiguous over 5>[%proc_linear_idx] extent %c60
        slice (%4#0, %4#1 at %4#2) of <contiguous over 5> extent %c60
        state %4#3, %4#4, %4#5 scale 2.500000e-01
        : (tensor<1x12x4x16xf32>, tensor<1x12x2x16xf32>, tensor<1x12x2x16xf32>) -> (tensor<1x12x4x16xf32>, tensor<1x4x12xf32>)
    %out, %lse = ring.finalize %o_0, %m_1, %l_2 : tensor<1x12x4x16xf32>, tensor<1x4x12xf32> -> tensor<1x12x4x16xf32>
    return %out, %lse : tensor<1x12x4x16xf32>, tensor<1x4x12xf32>
  }
}
