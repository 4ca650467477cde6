// RUN: burst-opt %s | burst-opt | FileCheck %s

// CHECK-LABEL: func @names
// CHECK-SAME: (%{{.*}}: tensor<4xf32> {burst.name = "q"}, %{{.*}}: index {burst.name = "any \22thing\22"}, %{{.*}}: i1)
// CHECK-SAME: -> (tensor<4xf32> {burst.name = "q"}, i1)
func.func @names(%q: tensor<4xf32> {burst.name = "q"},
                 %n: index {burst.name = "any \"thing\""}, %b: i1)
    -> (tensor<4xf32> {burst.name = "q"}, i1) {
  return %q, %b : tensor<4xf32>, i1
}
