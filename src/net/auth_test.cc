#include "net/auth.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "net/tls.h"

namespace muster::net {
namespace {

using testing::HasSubstr;
using testing::Not;

class TokenFile : public testing::Test {
 protected:
  TokenFile() {
    std::string name = (std::filesystem::temp_directory_path() / "token-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    path_ = folder_ + "/token";
  }
  ~TokenFile() override { std::filesystem::remove_all(folder_); }
  void Write(std::string_view text, mode_t mode = 0600) {
    std::ofstream(path_) << text;
    ::chmod(path_.c_str(), mode);
  }

  std::string folder_;
  std::string path_;
};

TEST(JoinTokenTest, IsReadAsItWasWritten) {
  for (int i = 0; i < 100; ++i) {
    const JoinToken token = JoinToken::Random();
    EXPECT_EQ(token.Reveal().size(), 43U);
    EXPECT_TRUE(JoinToken::Parse(token.Reveal())->Equals(token));
    EXPECT_FALSE(JoinToken::Random().Equals(token));
  }
}

TEST(JoinTokenTest, HasOneSpelling) {
  const std::string zeros(43, 'A');
  EXPECT_TRUE(JoinToken::Parse(zeros));
  EXPECT_FALSE(JoinToken::Parse(zeros.substr(1)));
  EXPECT_FALSE(JoinToken::Parse(zeros + "A"));
  EXPECT_FALSE(JoinToken::Parse(zeros.substr(1) + "B"));
  EXPECT_FALSE(JoinToken::Parse(zeros.substr(1) + "="));
  EXPECT_FALSE(JoinToken::Parse("+" + zeros.substr(1)));
}

TEST(JoinTokenTest, AdmitsItsOwnHeaderOnly) {
  const JoinToken token = JoinToken::Random();
  EXPECT_TRUE(token.AdmitsHeader("Bearer " + token.Reveal()));
  EXPECT_TRUE(token.AdmitsHeader("bearer " + token.Reveal()));
  EXPECT_FALSE(token.AdmitsHeader("Bearer " + JoinToken::Random().Reveal()));
  EXPECT_FALSE(token.AdmitsHeader("Bearer " + token.Reveal() + "A"));
  EXPECT_FALSE(token.AdmitsHeader("Bearer "));
  EXPECT_FALSE(token.AdmitsHeader("Basic " + token.Reveal()));
  EXPECT_FALSE(token.AdmitsHeader(token.Reveal()));
  EXPECT_FALSE(token.AdmitsHeader(""));
}

TEST_F(TokenFile, IsMadeForItsOwnerAndNeverReplaced) {
  const auto token = JoinToken::CreateFile(path_);
  ASSERT_TRUE(token) << token.error().ToString();
  struct stat about{};
  ASSERT_EQ(::stat(path_.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600U);
  EXPECT_TRUE(JoinToken::ReadFile(path_)->Equals(*token));
  EXPECT_EQ(JoinToken::CreateFile(path_).error().code(), Code::kAlreadyExists);
  EXPECT_TRUE(JoinToken::ReadFile(path_)->Equals(*token));
}

TEST_F(TokenFile, IsRefusedWhenOthersCanReadIt) {
  const std::string text = JoinToken::Random().Reveal();
  for (const mode_t mode : {0640U, 0604U, 0620U, 0666U}) {
    Write(text, mode);
    const auto token = JoinToken::ReadFile(path_);
    ASSERT_FALSE(token);
    EXPECT_EQ(token.error().code(), Code::kDenied);
    EXPECT_THAT(token.error().ToString(), HasSubstr("chmod 600"));
    EXPECT_THAT(token.error().ToString(), Not(HasSubstr(text)));
  }
}

TEST_F(TokenFile, IsRefusedWhenItHoldsNoTokenOrIsNoFile) {
  EXPECT_EQ(JoinToken::ReadFile(path_).error().code(), Code::kNotFound);
  for (const auto& text : {std::string(), std::string("\n"), std::string(1000, 'A'),
                           JoinToken::Random().Reveal() + "\n\n"}) {
    Write(text);
    EXPECT_EQ(JoinToken::ReadFile(path_).error().code(), Code::kPrecondition);
  }
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(JoinToken::ReadFile(path_).error().code(), Code::kPrecondition);
  std::filesystem::create_symlink(path_, folder_ + "/link");
  EXPECT_FALSE(JoinToken::ReadFile(folder_ + "/link"));
}

TEST(FingerprintTest, IsTheSha256OfTheBytes) {
  // FIPS 180-2, appendix B.1.
  const Fingerprint abc = Fingerprint::Of(AsBytes("abc"));
  EXPECT_EQ(abc.ToString(),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(*Fingerprint::Parse(abc.ToString()), abc);
  EXPECT_EQ(
      *Fingerprint::Parse("sha256:BA:78:16:BF:8F:01:CF:EA:41:41:40:DE:5D:AE:22:23:B0:03:61:A3:"
                          "96:17:7A:9C:B4:10:FF:61:F2:00:15:AD"),
      abc);
}

TEST(FingerprintTest, RefusesOtherForms) {
  const std::string hex(64, 'a');
  for (const auto& text :
       {hex, "sha256:" + hex.substr(1), "sha256:" + hex + "a", "sha1:" + hex,
        "sha256:" + hex.substr(1) + "g", std::string("sha256:"), std::string()}) {
    EXPECT_FALSE(Fingerprint::Parse(text)) << text;
  }
}

TEST(TlsIdentityTest, IsAnotherOneEachTime) {
  const auto a = MakeTlsIdentity("muster test", SystemClock().Wall());
  const auto b = MakeTlsIdentity("muster test", SystemClock().Wall());
  ASSERT_TRUE(a) << a.error().ToString();
  EXPECT_THAT(a->certificate_pem, HasSubstr("BEGIN CERTIFICATE"));
  EXPECT_THAT(a->key_pem, HasSubstr("BEGIN PRIVATE KEY"));
  EXPECT_NE(a->fingerprint, b->fingerprint);
  EXPECT_NE(a->key_pem, b->key_pem);
}

}  // namespace
}  // namespace muster::net
