// Any bytes as each small file of a dataset folder: manifest (its checksum made right, so that the
// parser behind it is reached), row index, HF's JSON, a loader's saved position. What parses must
// print back the same.
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/crc32c.h"
#include "data/layout/hf_check.h"
#include "data/layout/hf_json.h"
#include "data/layout/manifest.h"
#include "data/layout/row_index.h"
#include "data/order/loader_state.h"

namespace {

using namespace muster;

void FixChecksum(std::vector<std::byte>& manifest) {
  constexpr std::size_t kCrcAt = 52, kHeader = 56;
  if (manifest.size() < kHeader) return;
  std::memset(manifest.data() + kCrcAt, 0, 4);
  const std::uint32_t crc = Crc32c(manifest);
  for (std::size_t i = 0; i < 4; ++i) {
    manifest[kCrcAt + i] = static_cast<std::byte>(crc >> (8 * i));
  }
}

/// The same text as each file, of a set of ours and of one without a manifest.
void CheckHfJson(std::string_view text) {
  const data::arrow::Schema schema{
      .fields = {data::arrow::Int64Field("label"), data::arrow::Utf8Field("source")},
      .metadata = {{"huggingface", data::SchemaMetadataJson({"cat", "dog"})}}};
  const data::Manifest manifest;
  for (const data::HfTruth& truth :
       {data::HfTruth{&manifest, &schema}, data::HfTruth{nullptr, &schema}, data::HfTruth{}}) {
    (void)data::CheckStateJson(text, truth);
    (void)data::CheckDatasetInfoJson(text, truth);
  }
  (void)data::CheckDatasetDictJson(text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  if (size == 0) return 0;
  const auto* begin = reinterpret_cast<const std::byte*>(bytes);
  const ByteSpan rest(begin + 1, size - 1);
  switch (bytes[0]) {
    case 'm': {
      std::vector<std::byte> manifest(rest.begin(), rest.end());
      FixChecksum(manifest);
      const auto decoded = data::DecodeManifest(manifest);
      if (decoded && data::EncodeManifest(*decoded) != manifest) __builtin_trap();
      break;
    }
    case 'i':
      (void)data::RowEntries(rest, size / data::kRowEntryBytes);
      break;
    case 's': {
      const auto state = data::LoaderState::Parse(AsText(rest));
      if (state && *data::LoaderState::Parse(state->ToText()) != *state) __builtin_trap();
      break;
    }
    default:
      (void)data::ParseState(AsText(rest));
      (void)data::ParseDatasetDict(AsText(rest));
      (void)data::ParseDatasetInfo(AsText(rest));
      (void)data::ParseSchemaMetadata(AsText(rest));
      CheckHfJson(AsText(rest));
  }
  return 0;
}
