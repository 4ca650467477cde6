// RUN: burst-opt %s -verify-diagnostics -split-input-file

// expected-error @below {{axes must not be negative, got: -1}}
func.func private @sequence_c1() attributes {a = #burst.sequence<@cp[-1], zigzag>}

// -----

// expected-error @below {{names axis 1 twice}}
func.func private @axes_c1() attributes {a = #burst.axes<@cp[1, 0, 1]>}

// -----

// expected-error @below {{each axis follows the one before it in the grid, got: 0 behind 1}}
func.func private @sequence_c1() attributes {a = #burst.sequence<@cp[1, 0, 1], zigzag>}

// -----

// expected-error @below {{a block has 1 to 2^40 - 1 positions, got: 0}}
func.func private @sequence_c2() attributes {a = #burst.sequence<@cp, striped 0>}

// -----

// expected-error @below {{a block has 1 to 2^40 - 1 positions, got: -3}}
func.func private @sequence_c2() attributes {a = #burst.sequence<@cp, striped -3>}

// -----

// expected-error @below {{a block has 1 to 2^40 - 1 positions, got: 1099511627776}}
func.func private @sequence_c2() attributes {a = #burst.sequence<@cp, striped 1099511627776>}

// -----

// expected-error @below {{a block is for striped only, got: zigzag 2}}
func.func private @sequence_c2() attributes {a = #burst.sequence<@cp, zigzag 2>}

// -----

// expected-error @below {{a block is for striped only, got: contiguous 64}}
func.func private @sequence_c2() attributes {a = #burst.sequence<@cp, contiguous 64>}

// -----

// expected-error @below {{unknown order 'spiral', known: contiguous, zigzag, striped}}
func.func private @sequence() attributes {a = #burst.sequence<@cp, spiral>}

// -----

// expected-error @below {{expected valid keyword}}
func.func private @sequence() attributes {a = #burst.sequence<@cp, 3>}

// -----

// expected-error @below {{expected ','}}
func.func private @sequence() attributes {a = #burst.sequence<@cp>}

// -----

// expected-error @below {{expected ','}}
func.func private @sequence() attributes {a = #burst.sequence<@cp::@x, zigzag>}

// -----

// expected-error @below {{expected valid '@'-identifier for symbol name}}
func.func private @sequence() attributes {a = #burst.sequence<cp, zigzag>}

// -----

// expected-error @below {{integer value too large}}
func.func private @sequence() attributes {a = #burst.sequence<@cp, striped 99999999999999999999>}

// -----

// expected-error @below {{integer value too large}}
func.func private @sequence() attributes {a = #burst.sequence<@cp[99999999999999999999], zigzag>}

// -----

// expected-error @below {{expected '<'}}
func.func private @sequence() attributes {a = #burst.sequence}
