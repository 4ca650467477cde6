//===- Sha256Test.cpp - SHA-256 and HMAC by published vectors -------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "runtime/src/base/Sha256.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace {

std::string print(const unsigned char *digest) {
  std::string text;
  for (int i = 0; i < BURST_SHA256_BYTES; ++i)
    for (int nibble : {digest[i] >> 4, digest[i] & 15})
      text += "0123456789abcdef"[nibble];
  return text;
}

/// Added in parts of `step` bytes.
std::string sha256(const std::string &message, size_t step) {
  burst_sha256 hash;
  unsigned char digest[BURST_SHA256_BYTES];
  burst_sha256_begin(&hash);
  for (size_t at = 0; at < message.size(); at += step)
    burst_sha256_add(&hash, message.data() + at,
                     std::min(step, message.size() - at));
  burst_sha256_end(&hash, digest);
  return print(digest);
}

std::string hmac(const std::string &key, const std::string &message) {
  unsigned char digest[BURST_SHA256_BYTES];
  burst_hmac_sha256(key.data(), key.size(), message.data(), message.size(),
                    digest);
  return print(digest);
}

// FIPS 180-4, the examples of NIST.
TEST(Sha256, OfPublishedMessages) {
  const std::pair<std::string, const char *> vectors[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc",
       "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmno"
       "pjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
       "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
      {std::string(1000000, 'a'),
       "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const auto &[message, digest] : vectors)
    for (size_t step : {1, 63, 64, 1 << 20})
      EXPECT_EQ(sha256(message, step), digest) << step;
}

// RFC 4231.
TEST(Sha256, HmacOfPublishedMessages) {
  EXPECT_EQ(hmac(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(hmac(std::string(20, '\xaa'), std::string(50, '\xdd')),
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  EXPECT_EQ(hmac(std::string(131, '\xaa'),
                 "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

} // namespace
