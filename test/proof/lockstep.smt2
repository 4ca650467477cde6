; RUN: z3 %s | FileCheck %s
; REQUIRES: z3
;
; The lemmas of the theorem in docs/rationale-ring.md, "Why conditions on two
; neighbors are enough", for any number of ranks and places: what denies one of
; them cannot be satisfied.
(set-logic UFLIA)
(declare-const P Int)
(assert (>= P 1))
(define-fun rank ((r Int)) Bool (and (<= 0 r) (< r P)))

; To whom a rank sends at a place, and from whom it receives; -1 for nobody.
(declare-fun S (Int Int) Int)
(declare-fun R (Int Int) Int)
(define-fun sends ((r Int) (z Int)) Bool (rank (S r z)))
(define-fun receives ((r Int) (z Int)) Bool (rank (R r z)))
; The condition on two neighbors at one place.
(assert (forall ((r Int) (q Int) (z Int)) (=> (and (rank r) (rank q)) (= (= (S r z) q) (= (R q z) r)))))

; What has been handed over, of both ends.
(declare-fun sent (Int Int) Bool)
(declare-fun received (Int Int) Bool)
(define-fun pending ((r Int) (z Int)) Bool
  (or (and (sends r z) (not (sent r z))) (and (receives r z) (not (received r z)))))
; So far, messages were of one place each.
(define-fun ofOnePlace () Bool
  (forall ((r Int) (q Int) (z Int))
    (=> (and (rank r) (rank q) (= (S r z) q)) (= (sent r z) (received q z)))))

; 1. What is handed over from the first transfer of r that is pending to that of
; q is of one place.
; CHECK: sat
(push)
(assert ofOnePlace)
(declare-const r Int)
(declare-const q Int)
(declare-const z Int)
(declare-const y Int)
(assert (and (rank r) (rank q)))
(assert (forall ((x Int)) (=> (< x z) (not (pending r x)))))
(assert (forall ((x Int)) (=> (< x y) (not (pending q x)))))
(assert (and (= (S r z) q) (not (sent r z))))
(assert (and (= (R q y) r) (not (received q y))))
; It happens,
(push)
(assert (= P 2))
(assert (= z y 0))
(assert (and (= r 0) (= q 1)))
(check-sat)
(pop)
; and not of two places.
; CHECK-NEXT: unsat
(assert (not (= z y)))
(check-sat)
(pop)

; 2. That stays so when it is handed over.
; CHECK-NEXT: unsat
(push)
(assert ofOnePlace)
(declare-const r Int)
(declare-const q Int)
(declare-const z Int)
(assert (and (rank r) (rank q) (= (S r z) q)))
(define-fun sentThen ((u Int) (x Int)) Bool (or (sent u x) (and (= u r) (= x z))))
(define-fun receivedThen ((u Int) (x Int)) Bool (or (received u x) (and (= u q) (= x z))))
(declare-const u Int)
(declare-const v Int)
(declare-const x Int)
(assert (and (rank u) (rank v) (= (S u x) v) (not (= (sentThen u x) (receivedThen v x)))))
(check-sat)
(pop)

; 3. Where no rank can run, the earliest transfer that is pending can be handed
; over: its other end has been started and is pending, and all in front of both
; is done. A rank that has not come to a transfer waits for one in front of it.
; CHECK-NEXT: unsat
(push)
(assert ofOnePlace)
(declare-fun started (Int Int) Bool)
(assert (forall ((u Int) (x Int))
  (=> (and (rank u) (or (sends u x) (receives u x)) (not (started u x)))
      (exists ((y Int)) (and (< y x) (pending u y))))))
(declare-const r Int)
(declare-const z Int)
(assert (and (rank r) (pending r z)))
(assert (forall ((u Int) (x Int)) (=> (and (rank u) (< x z)) (not (pending u x)))))
(assert (not
  (or (and (sends r z) (not (sent r z)) (started (S r z) z) (not (received (S r z) z)))
      (and (receives r z) (not (received r z)) (started (R r z) z) (not (sent (R r z) z))))))
(check-sat)
(pop)
