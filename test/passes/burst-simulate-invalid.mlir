// RUN: split-file %s %t
// RUN: not burst-opt %t/static.mlir --burst-simulate=format=html 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not burst-opt %t/static.mlir --burst-simulate=max-ranks=0 2>&1 | FileCheck %s --check-prefix=RANKS
// RUN: not burst-opt %t/static.mlir --burst-simulate="max-ranks=2 format=json" 2>&1 | FileCheck %s --check-prefix=NO-RANKS
// RUN: not burst-opt %t/static.mlir --burst-simulate=compare=masks 2>&1 | FileCheck %s --check-prefix=COMPARE
// RUN: not burst-opt %t/static.mlir --burst-simulate="compare=orders format=svg" 2>&1 | FileCheck %s --check-prefix=DRAWS
// RUN: not burst-opt %t/static.mlir --burst-simulate=machine=%t/none.mlir 2>&1 | FileCheck %s --check-prefix=NO-FILE
// RUN: not burst-opt %t/static.mlir --burst-simulate=machine=%t/static.mlir 2>&1 | FileCheck %s --check-prefix=NO-MACHINE
// RUN: not burst-opt %t/static.mlir --burst-simulate=machine=%t/unknown.mlir 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not burst-opt %t/static.mlir --burst-simulate=machine=%t/half.mlir 2>&1 | FileCheck %s --check-prefix=HALF
// RUN: not burst-opt %t/static.mlir --burst-simulate=machine=%t/busy.mlir 2>&1 | FileCheck %s --check-prefix=BUSY
// RUN: not burst-opt %t/static.mlir --burst-simulate=machine=%t/links.mlir 2>&1 | FileCheck %s --check-prefix=LINKS
// RUN: not burst-opt %t/static.mlir --burst-simulate=machine=%t/many.mlir 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not burst-opt %t/static.mlir --burst-simulate=machine=%t/placed.mlir 2>&1 | FileCheck %s --check-prefix=PLACED
// RUN: not burst-opt %t/static.mlir --burst-simulate=machine=%t/axes.mlir 2>&1 | FileCheck %s --check-prefix=AXES
// RUN: not burst-opt %t/static.mlir --burst-simulate=machine=%t/number.mlir 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not burst-opt %t/static.mlir --burst-simulate=compare=placements 2>&1 | FileCheck %s --check-prefix=NO-NODES
// RUN: not burst-opt %t/static.mlir --burst-simulate=machine=%t/peak.mlir 2>&1 | FileCheck %s --check-prefix=PEAK
// RUN: not burst-opt %t/static.mlir --burst-simulate=machine=%t/slow.mlir 2>&1 | FileCheck %s --check-prefix=INFINITE
// RUN: not burst-opt %t/open.mlir --burst-simulate 2>&1 | FileCheck %s --check-prefix=OPEN
// RUN: not burst-opt %t/nothing.mlir --burst-simulate 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: burst-opt %t/static.mlir --burst-to-ring -o %t/ring.mlir
// RUN: not burst-opt %t/ring.mlir --burst-simulate=compare=orders 2>&1 | FileCheck %s --check-prefix=LOWERED

// FORMAT: burst-simulate prints text, json, trace or svg, got format=html
// RANKS: burst-simulate shows at least 1 rank, got max-ranks=0
// NO-RANKS: burst-simulate shows ranks in a trace or svg, got max-ranks=2 with format=json
// COMPARE: burst-simulate compares strategies, orders and placements, got compare=masks
// DRAWS: burst-simulate compares in text or json, got format=svg
// NO-FILE: cannot read a machine: {{.*}}none.mlir
// NO-MACHINE: static.mlir:{{.*}} describes no machine: it has no 'dlti.target_system_spec'
// UNKNOWN: describes "burst.speed" of the device "burst", which is not known; known are: burst.bandwidth, {{.*}}burst.flops.bf16.64
// HALF: describes burst.node as 1.50, wanted a whole number up to 2147483647
// BUSY: describes burst.busy as 1.00, wanted a share of the processors below 1
// LINKS: describes burst.links, those of a node, without burst.node, the ranks of one
// PLACED: describes burst.placement, how ranks are shared out to nodes, without burst.node, the ranks of one
// AXES: describes burst.placement as [1, 0], wanted each axis of @cp, which has 1
// NUMBER: describes "burst.placement" of the device "burst" as 1.000000e+00 : f64, but it must be axes, as in array<i64: 1, 0>
// NO-NODES: burst-simulate cannot compare placements: the machine describes no nodes, see burst.node
// MANY: describes burst.node as 1{{0+}}.00, wanted a whole number up to 2147483647
// PEAK: describes burst.peak as 1.00, wanted at least burst.flops, which is 2.00
// INFINITE: has no finite time on this machine; is an entry of it too small or too large?
// OPEN: has sizes or tables that are known at run time only, so nothing can be said of its time; make them static
// NOTHING: has no program of a rank, nor burst.attention
// LOWERED: is lowered to programs of ranks, of which nothing is left to compare

//--- static.mlir
shard.grid @cp(shape = 2)
!s = tensor<1x256x1x64xf32>
func.func @static(%q: !s, %k: !s, %v: !s) -> (!s, tensor<1x1x256xf32>) {
  %o, %l = burst.attention %q, %k, %v sequence <@cp, contiguous>
    : (!s, !s, !s) -> (!s, tensor<1x1x256xf32>)
  return %o, %l : !s, tensor<1x1x256xf32>
}

//--- open.mlir
shard.grid @cp(shape = 2)
!s = tensor<1x?x1x64xf32>
func.func @open(%q: !s, %k: !s, %v: !s) -> (!s, tensor<1x1x?xf32>) {
  %o, %l = burst.attention %q, %k, %v sequence <@cp, contiguous>
    : (!s, !s, !s) -> (!s, tensor<1x1x?xf32>)
  return %o, %l : !s, tensor<1x1x?xf32>
}

//--- nothing.mlir
func.func @nothing() { return }

//--- unknown.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.speed" = 1.0 : f64>>} {}

//--- half.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.node" = 1.5 : f64>>} {}

//--- placed.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.placement" = array<i64: 0>>>} {}

//--- axes.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.placement" = array<i64: 1, 0>, "burst.node" = 2.0 : f64>>} {}

//--- number.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.placement" = 1.0 : f64>>} {}

//--- busy.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.busy" = 1.0 : f64>>} {}

//--- links.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.links" = 8.0 : f64>>} {}

//--- many.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.node" = 1.0e19 : f64>>} {}

//--- peak.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.flops" = 2.0 : f64, "burst.peak" = 1.0 : f64>>} {}

//--- slow.mlir
module attributes {dlti.target_system_spec = #dlti.target_system_spec<
  "burst" = #dlti.target_device_spec<"burst.flops" = 1.0e-300 : f64>>} {}
