// RUN: burst-opt %s --burst-guard-regions | FileCheck %s
// RUN: burst-opt %s --burst-guard-regions --canonicalize --cse | FileCheck %s --check-prefix=FOLDED
// RUN: burst-opt %s --burst-guard-regions --remarks-filter=regions -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!q = tensor<1x64x2x8xf32>
!l = tensor<1x2x64xf32>

// Nothing to guard: divisors and amounts that are known.
// CHECK-LABEL: func @safe
// CHECK: mask(
// CHECK-NEXT: %[[C:.*]] = arith.constant 3 : index
// CHECK-NEXT: %[[A:.*]] = arith.divui %i, %[[C]] : index
// CHECK-NEXT: %[[B:.*]] = arith.shli %[[A]], %[[C]] : index
// CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : index
// CHECK-NEXT: %[[D:.*]] = arith.addi %j, %[[ONE]] : index
// CHECK-NEXT: %[[E:.*]] = arith.divsi %[[B]], %[[D]] : index
// CHECK-NEXT: arith.cmpi
func.func @safe(%q: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %c3 = arith.constant 3 : index
        %x = arith.divui %i, %c3 : index
        %y = arith.shli %x, %c3 : index
        %c1 = arith.constant 1 : index
        %d = arith.addi %j, %c1 : index
        %z = arith.divsi %y, %d : index
        %keep = arith.cmpi eq, %z, %h : index
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// An unsigned divisor may be 0; a signed one of narrow integers -1 as well.
// CHECK-LABEL: func @divisions
// CHECK: %[[IS_ZERO:.*]] = arith.cmpi eq, %j, %{{.*}} : index
// CHECK: %[[SAFE:.*]] = arith.select %[[IS_ZERO]], %{{.*}}, %j : index
// CHECK: %[[REM:.*]] = arith.remui %i, %[[SAFE]] : index
// CHECK: arith.select %[[IS_ZERO]], %i, %[[REM]] : index
// CHECK: %[[NO_AMOUNT:.*]] = arith.cmpi eq, %[[Y:.*]], %{{.*}} : i8
// CHECK: %[[MINUS:.*]] = arith.cmpi eq, %[[Y]], %{{.*}} : i8
// CHECK: %[[EITHER:.*]] = arith.ori %[[NO_AMOUNT]], %[[MINUS]] : i1
// CHECK: %[[SAFE8:.*]] = arith.select %[[EITHER]], %{{.*}}, %[[Y]] : i8
// CHECK: %[[QUOTIENT:.*]] = arith.divsi %[[X:.*]], %[[SAFE8]] : i8
// CHECK: %[[NEGATED:.*]] = arith.subi %{{.*}}, %[[X]] : i8
// CHECK: %[[SIGNED:.*]] = arith.select %[[MINUS]], %[[NEGATED]], %[[QUOTIENT]] : i8
// CHECK: arith.select %[[NO_AMOUNT]], %{{.*}}, %[[SIGNED]] : i8
func.func @divisions(%q: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %x = arith.remui %i, %j : index
        %i8 = arith.index_cast %x : index to i8
        %j8 = arith.index_cast %j : index to i8
        %y = arith.divsi %i8, %j8 : i8
        %keep = arith.cmpi sge, %y, %i8 : i8
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// CHECK-LABEL: func @shifts
// CHECK: %[[AMOUNT:.*]] = arith.minui %j, %c63 : index
// CHECK: %[[LEFT:.*]] = arith.shli %i, %[[AMOUNT]] : index
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %j, %{{.*}} : index
// CHECK: arith.select %[[INSIDE]], %[[LEFT]], %{{.*}} : index
// CHECK: arith.shrsi %{{.*}}, %{{.*}} : index
// CHECK-NOT: select
// CHECK: yield
func.func @shifts(%q: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %x = arith.shli %i, %j : index
        %y = arith.shrsi %x, %j : index
        %keep = arith.cmpi eq, %i, %y : index
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// Upstream folds index_cast(index_cast(x)), whatever the width in between.
// FOLDED-LABEL: func @narrow
// FOLDED: %[[WIDE:.*]] = arith.index_cast %i : index to i64
// FOLDED: %[[NARROW:.*]] = arith.trunci %[[WIDE]] : i64 to i8
// FOLDED: %[[M:.*]] = arith.index_cast %[[NARROW]] : i8 to index
// FOLDED: arith.cmpi sle, %j, %[[M]] : index
// FOLDED: %[[N:.*]] = arith.index_castui %[[NARROW]] : i8 to index
// FOLDED: arith.cmpi sle, %j, %[[N]] : index
func.func @narrow(%q: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %n = arith.index_cast %i : index to i8
        %m = arith.index_cast %n : i8 to index
        %x = arith.cmpi sle, %j, %m : index
        %n2 = arith.index_castui %i : index to i8
        %m2 = arith.index_castui %n2 : i8 to index
        %y = arith.cmpi sle, %j, %m2 : index
        %keep = arith.andi %x, %y : i1
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// Upstream folds truncf(sitofp(x)) to one rounding.
// FOLDED-LABEL: func @rounds_twice
// FOLDED: %[[FLOAT:.*]] = arith.sitofp %{{.*}} : i64 to f32
// FOLDED: %[[SUM:.*]] = arith.addf %[[FLOAT]], %{{.*}} : f32
// FOLDED: arith.truncf %[[SUM]] : f32 to bf16
func.func @rounds_twice(%q: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %n = arith.index_cast %i : index to i64
        %f = arith.sitofp %n : i64 to f32
        %x = arith.truncf %f : f32 to bf16
        %c = arith.constant 4.0 : bf16
        %keep = arith.cmpf ole, %x, %c : bf16
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// So it does where other folds have brought both together, and where the first
// rounding is none, by way of f32.
// FOLDED-LABEL: func @rounds_behind_a_fold
// FOLDED: %[[WIDE:.*]] = arith.uitofp %{{.*}} : i64 to f64
// FOLDED: %[[SUM:.*]] = arith.addf %[[WIDE]], %{{.*}} : f64
// FOLDED: arith.truncf %[[SUM]] : f64 to bf16
// FOLDED: %[[EXACT:.*]] = arith.sitofp %{{.*}} : i32 to f64
// FOLDED: %[[SAME:.*]] = arith.addf %[[EXACT]], %{{.*}} : f64
// FOLDED: arith.truncf %[[SAME]] : f64 to bf16
func.func @rounds_behind_a_fold(%q: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %no = arith.constant false
        %zero = arith.constant 0.0 : f64
        %n = arith.index_cast %i : index to i64
        %f = arith.uitofp %n : i64 to f64
        %g = arith.select %no, %zero, %f : f64
        %x = arith.truncf %g : f64 to bf16
        %m = arith.index_cast %j : index to i32
        %e = arith.sitofp %m : i32 to f64
        %y = arith.truncf %e : f64 to bf16
        %keep = arith.cmpf ole, %x, %y : bf16
        burst.yield %keep : i1
      } : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// Floats saturate, and a NaN becomes 0. 16 bits are computed in f32.
// CHECK-LABEL: func @floats
// CHECK: score(%s : f32,
// CHECK: %[[LIMIT:.*]] = arith.constant 1.280000e+02 : f32
// CHECK: %[[BELOW:.*]] = arith.cmpf olt, %s, %[[LIMIT]] : f32
// CHECK: %[[ABOVE:.*]] = arith.cmpf oge, %s, %[[LIMIT]] : f32
// CHECK: %[[FINITE:.*]] = arith.select %[[BELOW]], %s, %{{.*}} : f32
// CHECK: %[[LEAST:.*]] = arith.constant -1.280000e+02 : f32
// CHECK: arith.cmpf olt, %[[FINITE]], %[[LEAST]] : f32
// CHECK: %[[INTEGER:.*]] = arith.fptosi %{{.*}} : f32 to i8
// CHECK: arith.select %[[ABOVE]], %{{.*}}, %[[INTEGER]] : i8
// CHECK: %[[WIDE:.*]] = arith.extf %[[SHORT:.*]] : bf16 to f32
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[WIDE]], %{{.*}} : f32
// CHECK: arith.truncf %[[SQUARE]] : f32 to bf16
// CHECK: %[[LARGER:.*]] = arith.maxnumf %s, %{{.*}} : f32
// CHECK: arith.addf %[[LARGER]], %{{.*}} : f32
// CHECK: %[[IS_NAN:.*]] = arith.cmpf uno, %[[SIGN:.*]], %[[SIGN]] : f32
// CHECK: %[[KNOWN:.*]] = arith.select %[[IS_NAN]], %{{.*}}, %[[SIGN]] : f32
// CHECK: math.copysign %s, %[[KNOWN]] : f32
func.func @floats(%q: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %q, %q
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        %n = arith.fptosi %s : f32 to i8
        %x = arith.sitofp %n : i8 to f32
        %short = arith.truncf %x : f32 to bf16
        %square = arith.mulf %short, %short : bf16
        %y = arith.extf %square : bf16 to f32
        %z = arith.maxnumf %s, %y : f32
        %c = math.copysign %s, %z : f32
        burst.yield %c : f32
      } : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}

// CHECK-LABEL: func @flags
// CHECK: arith.muli %i, %j : index
// CHECK: arith.divui %{{.*}} : index
// CHECK-NOT: fastmath
// FOLDED-LABEL: func @flags
// FOLDED: arith.muli
// FOLDED: arith.divui
// REMARK: remark: [Missed] dropped-flags | Category:regions | flags=overflowFlags, op=arith.muli
// REMARK: dropped-flags | Category:regions | flags=isExact, op=arith.divui
// REMARK: dropped-flags | Category:regions | flags=fastmath, op=arith.addf
func.func @flags(%q: !q) -> (!q, !l) {
  %o, %lse = burst.attention %q, %q, %q
      mask(%b, %h, %i, %j, %sq, %sk) {
        %x = arith.muli %i, %j overflow<nsw, nuw> : index
        %y = arith.divui %x, %j exact : index
        %keep = arith.cmpi eq, %y, %i : index
        burst.yield %keep : i1
      }
      score(%s : f32, %b, %h, %i, %j, %sq, %sk) {
        %x = arith.addf %s, %s fastmath<nnan> : f32
        burst.yield %x : f32
      } : (!q, !q, !q) -> (!q, !l)
  return %o, %lse : !q, !l
}
