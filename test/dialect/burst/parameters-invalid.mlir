// RUN: burst-opt %s -verify-diagnostics -split-input-file

// Parameters of named masks and scores, and of the strategy.

// expected-error @below {{left must be in [0, 2^40], got: -1}}
func.func private @window_c1() attributes {a = #burst.window<left = -1>}

// -----

// expected-error @below {{right must be in [0, 2^40], got: -9223372036854775808}}
func.func private @window_c1() attributes {a = #burst.window<left = 0, right = -9223372036854775808>}

// -----

// expected-error @below {{right must be in [0, 2^40], got: 1099511627777}}
func.func private @window_c1() attributes {a = #burst.window<right = 1099511627777>}

// -----

// expected-error @below {{mask 'window' takes <left = N, right = N>}}
func.func private @window() attributes {a = #burst.window}

// -----

// expected-error @below {{expected '='}}
func.func private @window() attributes {a = #burst.window<left>}

// -----

// expected-error @below {{duplicate or unknown struct parameter name: left}}
func.func private @window() attributes {a = #burst.window<left = 1, left = 2>}

// -----

// expected-error @below {{duplicate or unknown struct parameter name: width}}
func.func private @window() attributes {a = #burst.window<width = 1>}

// -----

// expected-error @below {{a prefix must be in [0, 2^40], got: -1}}
func.func private @prefix_c1() attributes {a = #burst.prefix<-1>}

// -----

// expected-error @below {{a prefix must be in [0, 2^40], got: 1099511627777}}
func.func private @prefix_c1() attributes {a = #burst.prefix<1099511627777>}

// -----

// expected-error @below {{mask 'prefix' takes <N>}}
func.func private @prefix() attributes {a = #burst.prefix}

// -----

// expected-error @below {{integer value too large}}
// expected-error @below {{failed to parse Burst_PrefixAttr parameter 'length'}}
func.func private @prefix() attributes {a = #burst.prefix<99999999999999999999>}

// -----

// expected-error @below {{cap must be in [2^-126, 2^127], got: }}
func.func private @softcap_c1() attributes {a = #burst.softcap<0.0>}

// -----

// expected-error @below {{cap must be in [2^-126, 2^127], got: }}
func.func private @softcap_c1() attributes {a = #burst.softcap<-1.0>}

// -----

// expected-error @below {{cap must be in [2^-126, 2^127], got: }}
func.func private @softcap_c1() attributes {a = #burst.softcap<-0.0>}

// -----

// Infinite, NaN, and what underflows or overflows in an f32.
// expected-error @below {{cap must be in [2^-126, 2^127], got: INF}}
func.func private @softcap_c1() attributes {a = #burst.softcap<1.0e999>}

// -----

// expected-error @below {{cap must be in [2^-126, 2^127], got: INF}}
func.func private @softcap_c1() attributes {a = #burst.softcap<0x7FF0000000000000>}

// -----

// expected-error @below {{cap must be in [2^-126, 2^127], got: nan}}
func.func private @softcap_c1() attributes {a = #burst.softcap<0x7FF8000000000000>}

// -----

// expected-error @below {{cap must be in [2^-126, 2^127], got: }}
func.func private @softcap_c1() attributes {a = #burst.softcap<1.0e-38>}

// -----

// expected-error @below {{cap must be in [2^-126, 2^127], got: }}
func.func private @softcap_c1() attributes {a = #burst.softcap<3.0e38>}

// -----

// expected-error @below {{score 'softcap' takes <CAP>}}
func.func private @softcap() attributes {a = #burst.softcap}

// -----

// expected-error @below {{expected floating point literal}}
func.func private @softcap() attributes {a = #burst.softcap<nan>}

// -----

// expected-error @below {{unexpected decimal integer literal for a floating point value}}
// expected-note @below {{add a trailing dot to make the literal a float}}
func.func private @softcap() attributes {a = #burst.softcap<30>}

// -----

// expected-error @below {{unknown attribute `nosuch` in dialect `burst`}}
func.func private @unknown() attributes {a = #burst.nosuch}

// -----

// expected-error @below {{expected valid keyword}}
func.func private @strategy() attributes {a = #burst.strategy<7>}
