// RUN: burst-opt %s --burst-partition | FileCheck %s

shard.grid @cp(shape = 4)

// An attention and its gradients: what the first makes is cut and put together
// again, so that each is lowered by itself. Gradients are sharded like what they
// are by.
//
// CHECK-LABEL: func @both
// CHECK-SAME: %[[DLSE:[^ ]+]]: tensor<1x4x128xf32> {burst.name = "dlse", ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 2 extent 512>})
// CHECK-SAME: -> (tensor<1x128x4x32xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 512>},
// CHECK-SAME: tensor<1x128x4x64xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 512>},
// CHECK-SAME: tensor<1x64x2x64xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 256>},
// CHECK-SAME: tensor<1x64x2x32xf32> {ring.shard = #ring.shard<#ring.layout<zigzag over 4>, dim 1 extent 256>})
// CHECK: %[[OUT:.*]], %[[LSE:.*]] = burst.attention %[[Q:.*]], %[[K:.*]], %[[V:.*]] sequence
// CHECK: %[[DO:.*]] = burst.unshard %{{.*}} dim 1
// CHECK: %[[DL:.*]] = burst.unshard %[[DLSE]] dim 2
// CHECK: %[[LO:.*]] = burst.shard %[[OUT]] dim 1 by <@cp, zigzag>
// CHECK: %[[GO:.*]] = burst.unshard %[[LO]] dim 1
// CHECK: %[[LL:.*]] = burst.shard %[[LSE]] dim 2 by <@cp, zigzag>
// CHECK: %[[GL:.*]] = burst.unshard %[[LL]] dim 2
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]] = burst.attention_backward %[[Q]], %[[K]], %[[V]], %[[GO]], %[[GL]], %[[DO]], %[[DL]] sequence
// CHECK-DAG: burst.shard %[[DQ]] dim 1 by <@cp, zigzag> : tensor<1x512x4x64xf32> -> tensor<1x128x4x64xf32>
// CHECK-DAG: burst.shard %[[DK]] dim 1 by <@cp, zigzag> : tensor<1x256x2x64xf32> -> tensor<1x64x2x64xf32>
// CHECK-DAG: burst.shard %[[DV]] dim 1 by <@cp, zigzag> : tensor<1x256x2x32xf32> -> tensor<1x64x2x32xf32>
func.func @both(%q: tensor<1x512x4x64xf32>, %k: tensor<1x256x2x64xf32>,
                %v: tensor<1x256x2x32xf32>, %do: tensor<1x512x4x32xf32>,
                %dlse: tensor<1x4x512xf32> {burst.name = "dlse"})
    -> (tensor<1x512x4x32xf32>, tensor<1x512x4x64xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x32xf32>) {
  %o, %lse = burst.attention %q, %k, %v sequence <@cp, zigzag>
      : (tensor<1x512x4x64xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x32xf32>)
      -> (tensor<1x512x4x32xf32>, tensor<1x4x512xf32>)
  %dq, %dk, %dv = burst.attention_backward %q, %k, %v, %o, %lse, %do, %dlse sequence <@cp, zigzag>
      : (tensor<1x512x4x64xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x32xf32>,
         tensor<1x512x4x32xf32>, tensor<1x4x512xf32>, tensor<1x512x4x32xf32>, tensor<1x4x512xf32>)
      -> (tensor<1x512x4x64xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x32xf32>)
  return %o, %dq, %dk, %dv : tensor<1x512x4x32xf32>, tensor<1x512x4x64xf32>, tensor<1x256x2x64xf32>, tensor<1x256x2x32xf32>
}

// Sizes that are known at run time only are arguments. Every rank has the whole
// table, and gives a part of its gradient.
//
// CHECK-LABEL: func @dynamic
// CHECK-SAME: %[[T:[^ ]+]]: tensor<9xf32>,
// CHECK-SAME: %[[SQ:[^ ]+]]: index {ring.extent = array<i64: 0, 1, 2, 1, 3, 2>}, %[[SK:[^ ]+]]: index {ring.extent = array<i64: 1, 1>})
// CHECK-SAME: tensor<9xf32> {ring.partial})
// CHECK-DAG: %[[Q:.*]] = burst.unshard %{{.*}} dim 1 extent %[[SQ]]
// CHECK-DAG: %[[LSE:.*]] = burst.unshard %{{.*}} dim 2 extent %[[SQ]]
// CHECK-DAG: %[[K:.*]] = burst.unshard %{{.*}} dim 1 extent %[[SK]]
// CHECK: %[[DQ:.*]], %[[DK:.*]], %[[DV:.*]], %[[DT:.*]] = burst.attention_backward %[[Q]], %[[K]], %[[K]], %{{.*}}, %[[LSE]], %{{.*}}
// CHECK: return %{{.*}}, %{{.*}}, %{{.*}}, %[[DT]] :
func.func @dynamic(%q: tensor<?x?x1x4xbf16>, %k: tensor<?x?x1x4xbf16>,
                   %o: tensor<?x?x1x4xbf16>, %lse: tensor<?x1x?xf32>, %t: tensor<9xf32>)
    -> (tensor<?x?x1x4xbf16>, tensor<?x?x1x4xbf16>, tensor<?x?x1x4xbf16>, tensor<9xf32>) {
  %dq, %dk, %dv, %dt = burst.attention_backward %q, %k, %k, %o, %lse, %o
      score(%s : f32, %b, %h, %i, %j, %sq, %sk, %c = %t : tensor<9xf32>) {
        burst.yield %s : f32
      }
      sequence <@cp, striped 2>
      gradient(%s : f32, %b, %h, %i, %j, %sq, %sk, %w : f32, %c : tensor<9xf32>) {
        burst.yield %w : f32
      }
      gradients [0]
      : (tensor<?x?x1x4xbf16>, tensor<?x?x1x4xbf16>, tensor<?x?x1x4xbf16>,
         tensor<?x?x1x4xbf16>, tensor<?x1x?xf32>, tensor<?x?x1x4xbf16>)
      -> (tensor<?x?x1x4xbf16>, tensor<?x?x1x4xbf16>, tensor<?x?x1x4xbf16>, tensor<9xf32>)
  return %dq, %dk, %dv, %dt : tensor<?x?x1x4xbf16>, tensor<?x?x1x4xbf16>, tensor<?x?x1x4xbf16>, tensor<9xf32>
}
