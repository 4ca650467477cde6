// RUN: burst-opt %s -verify-diagnostics -split-input-file

// expected-error @below {{'burst.name' must be a string that is not empty, got: unit}}
func.func private @name(tensor<4xf32> {burst.name})

// -----

// expected-error @below {{'burst.name' must be a string that is not empty, got: unit}}
func.func private @name() -> (tensor<4xf32> {burst.name})

// -----

// expected-error @below {{'burst.name' must be a string that is not empty, got: ""}}
func.func private @name(tensor<4xf32> {burst.name = ""})

// -----

// expected-error @below {{'burst.name' must be a string that is not empty, got: ""}}
func.func private @name() -> (tensor<4xf32> {burst.name = ""})

// -----

// expected-error @below {{'burst.name' must be a string that is not empty, got: 3 : i64}}
func.func private @name(tensor<4xf32> {burst.name = 3})

// -----

// expected-error @below {{'burst.name' must be a string that is not empty, got: 3 : i64}}
func.func private @name() -> (tensor<4xf32> {burst.name = 3})

// -----

// expected-error @below {{'burst.name' must be a string that is not empty, got: @q}}
func.func private @name(tensor<4xf32> {burst.name = @q})

// -----

// expected-error @below {{'burst.name' must be a string that is not empty, got: @q}}
func.func private @name() -> (tensor<4xf32> {burst.name = @q})

// -----

// Two of one name.
// expected-error @below {{'burst.name' must differ, got twice: "a"}}
func.func private @name(index {burst.name = "a"}, index, i1 {burst.name = "a"})

// -----

// expected-error @below {{'burst.name' must differ, got twice: "a"}}
func.func private @name() -> (index {burst.name = "a"}, index {burst.name = "a"})

// -----

// Attributes that the dialect does not know.
// expected-error @below {{unknown attribute of an argument or result: "burst.nam"}}
func.func private @name(index {burst.nam = "a"})

// -----

// expected-error @below {{unknown attribute of an argument or result: "burst.foo"}}
func.func private @name() -> (index {burst.foo})

// -----

// expected-error @below {{unknown attribute: "burst.name"}}
func.func private @name() attributes {burst.name = "f"}

// -----

// expected-error @below {{unknown attribute: "burst.grid"}}
module attributes {burst.grid = 1} {}
