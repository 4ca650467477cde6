// RUN: burst-opt %s --split-input-file --verify-diagnostics

// require_c1
func.func @nothing(%a: index) {
  // expected-error @below {{must say what it requires, without zero bytes}}
  ring.require %a at least %a, ""
  return
}

// -----

// require_c1
func.func @zero(%a: index) {
  // expected-error @below {{must say what it requires, without zero bytes}}
  ring.require %a at least %a, "size\00of"
  return
}
