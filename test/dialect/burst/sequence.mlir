// RUN: burst-opt %s | burst-opt | FileCheck %s

// CHECK-LABEL: func private @sequences
// CHECK-SAME: a = #burst.sequence<@cp, contiguous>
// CHECK-SAME: b = #burst.sequence<@cp, zigzag>
// CHECK-SAME: c = #burst.sequence<@cp, striped>
// CHECK-SAME: d = #burst.sequence<@cp, striped>
// CHECK-SAME: e = #burst.sequence<@cp, striped 64>
// CHECK-SAME: f = #burst.sequence<@cp, striped 1099511627775>
// CHECK-SAME: g = #burst.sequence<@cp[0], striped 64>
// CHECK-SAME: h = #burst.sequence<@cp[], zigzag>
// CHECK-SAME: i = #burst.sequence<@"a b"[1, 2, 3], zigzag>
// CHECK-SAME: j = #burst.sequence<@cp[9223372036854775807], contiguous>
// CHECK-SAME: k = #burst.sequence<@cp, contiguous>
func.func private @sequences() attributes {
  a = #burst.sequence<@cp, contiguous>,
  b = #burst.sequence<@cp, zigzag>,
  c = #burst.sequence<@cp, striped>,
  d = #burst.sequence<@cp, striped 1>,
  e = #burst.sequence<@cp, striped 64>,
  f = #burst.sequence<@cp, striped 1099511627775>,
  g = #burst.sequence<@cp[0], striped 64>,
  h = #burst.sequence<@cp[], zigzag>,
  i = #burst.sequence<@"a b"[1, 2, 3], zigzag>,
  j = #burst.sequence<@cp[9223372036854775807], contiguous>,
  k = #burst.sequence<@cp, contiguous 1>
}
