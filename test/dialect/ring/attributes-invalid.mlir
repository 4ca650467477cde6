// RUN: burst-opt %s -verify-diagnostics -split-input-file

// expected-error @below {{a layout has 1 to 2^20 parts, got: 0}}
func.func private @layout_c1() attributes {a = #ring.layout<zigzag over 0>}

// -----

// expected-error @below {{a layout has 1 to 2^20 parts, got: -1}}
func.func private @layout_c1() attributes {a = #ring.layout<zigzag over -1>}

// -----

// expected-error @below {{a layout has 1 to 2^20 parts, got: 1048577}}
func.func private @layout_c1() attributes {a = #ring.layout<zigzag over 1048577>}

// -----

// expected-error @below {{a block has 1 to 2^40 / parts positions, got: 0}}
func.func private @layout_c1() attributes {a = #ring.layout<striped 0 over 2>}

// -----

// expected-error @below {{a block has 1 to 2^40 / parts positions, got: 549755813888}}
func.func private @layout_c1() attributes {a = #ring.layout<striped 549755813888 over 2>}

// -----

// expected-error @below {{a block has 1 to 2^40 / parts positions, got: 1099511627776}}
func.func private @layout_c1() attributes {a = #ring.layout<striped 1099511627776 over 1>}

// -----

// expected-error @below {{a block is for striped only, got: zigzag 2}}
func.func private @layout_c1() attributes {a = #ring.layout<zigzag 2 over 8>}

// -----

// expected-error @below {{integer value too large}}
func.func private @layout() attributes {a = #ring.layout<zigzag over 99999999999999999999>}

// -----

// expected-error @below {{unknown order 'spiral', known: contiguous, zigzag, striped}}
func.func private @layout() attributes {a = #ring.layout<spiral over 8>}

// -----

// expected-error @below {{expected 'over'}}
func.func private @layout() attributes {a = #ring.layout<zigzag>}

// -----

// expected-error @below {{expected '<'}}
func.func private @layout() attributes {a = #ring.layout}

// -----

// expected-error @below {{dim must not be negative, got: -1}}
func.func private @shard_c1() attributes {a = #ring.shard<#ring.layout<zigzag over 8>, dim -1 extent 8>}

// -----

// expected-error @below {{extent must be in [0, 2^40), got: -1}}
func.func private @shard_c1() attributes {a = #ring.shard<#ring.layout<zigzag over 8>, dim 0 extent -1>}

// -----

// expected-error @below {{extent must be in [0, 2^40), got: 1099511627776}}
func.func private @shard_c1() attributes {a = #ring.shard<#ring.layout<zigzag over 8>, dim 0 extent 1099511627776>}

// -----

// expected-error @below {{invalid kind of attribute specified}}
func.func private @shard() attributes {a = #ring.shard<#ring.channel<@cp, 0>, dim 0 extent 8>}

// -----

// expected-error @below {{expected attribute value}}
func.func private @shard() attributes {a = #ring.shard<<zigzag over 8>, dim 0 extent 8>}

// -----

// expected-error @below {{expected 'extent'}}
func.func private @shard() attributes {a = #ring.shard<#ring.layout<zigzag over 8>, dim 0>}

// -----

// expected-error @below {{expected integer value}}
func.func private @shard() attributes {a = #ring.shard<#ring.layout<zigzag over 8>, dim ? extent 8>}

// -----

// expected-error @below {{a channel's number must not be negative, got: -1}}
func.func private @channel_c1() attributes {a = #ring.channel<@cp, -1>}

// -----

// expected-error @below {{expected ','}}
func.func private @channel() attributes {a = #ring.channel<@cp>}

// -----

// expected-error @below {{unknown attribute `nosuch` in dialect `ring`}}
func.func private @unknown() attributes {a = #ring.nosuch}

// -----

// expected-error @below {{expected non-function type}}
// expected-error @below {{failed to parse Ring_TokenType parameter 'types'}}
func.func private @token(!ring.token<>)

// -----

// expected-error @below {{unknown  type `nosuch` in dialect `ring`}}
func.func private @unknown(!ring.nosuch)
