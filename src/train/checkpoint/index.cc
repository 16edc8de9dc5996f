// The flat index: what makes it valid, what two of them must share, and that slices fill it.
#include <algorithm>
#include <set>

#include "train/checkpoint/manifest.h"
#include "train/checkpoint/safetensors.h"

namespace muster::checkpoint {
namespace {

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

constexpr std::uint64_t kMostElements = std::uint64_t{1} << 58;

bool GoodName(const std::string& name) {
  return !name.empty() && name.size() <= 1024 && std::ranges::all_of(name, [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
  });
}

Error Wrong(const IndexEntry& entry, std::string_view what) {
  return Error(Code::kInvalid, "tensor '" + entry.name.substr(0, 200) + "' " + std::string(what));
}

Status ValidateGroups(const FlatIndex& index) {
  std::set<std::string_view> names;
  for (const Group& group : index.groups) {
    if (!GoodName(group.name) || group.name.find('@') != std::string::npos)
      return Error(Code::kInvalid, "group '" + group.name.substr(0, 200) + "' has a bad name");
    if (!names.insert(group.name).second)
      return Error(Code::kInvalid, "group '" + group.name + "' appears twice");
  }
  if (!names.contains(kParamGroup)) return Error(Code::kInvalid, "there is no group 'param'");
  return Ok();
}

std::string ShapeText(const std::vector<std::uint64_t>& shape) {
  std::string text = "[";
  for (const std::uint64_t extent : shape)
    text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
  return text + "]";
}

/// The parts of a group that files hold, merged; nothing is held twice.
Result<std::vector<Range>> Stored(const Manifest& manifest, const std::string& group) {
  std::vector<Range> ranges;
  for (const StoredFile& file : manifest.files) {
    for (const StoredSlice& slice : file.slices) {
      if (slice.group == group && slice.length != 0)
        ranges.push_back({slice.begin, slice.begin + slice.length});
    }
  }
  std::ranges::sort(ranges, {}, &Range::begin);
  std::vector<Range> merged;
  for (const Range& range : ranges) {
    if (!merged.empty() && range.begin < merged.back().end)
      return Error(Code::kPrecondition, "element " + std::to_string(range.begin) + " of group '" +
                                            group + "' is stored twice");
    if (!merged.empty() && range.begin == merged.back().end) {
      merged.back().end = range.end;
    } else {
      merged.push_back(range);
    }
  }
  return merged;
}

}  // namespace

Status Validate(const FlatIndex& index) {
  if (index.length > kMostElements)
    return Error(Code::kInvalid, "the flat space is too large: " + std::to_string(index.length));
  MUSTER_TRY(ValidateGroups(index));
  std::set<std::string_view> names;
  std::vector<const IndexEntry*> order;
  for (const IndexEntry& entry : index.entries) {
    if (!GoodName(entry.name)) return Wrong(entry, "has a bad name");
    if (!names.insert(entry.name).second) return Wrong(entry, "appears twice");
    const auto elements = ElementsOf(entry.shape);
    if (!elements || *elements != entry.length)
      return Wrong(entry, "has a length unlike its shape");
    if (entry.offset > index.length || entry.length > index.length - entry.offset)
      return Wrong(entry, "leaves the flat space of " + std::to_string(index.length));
    if (entry.length != 0) order.push_back(&entry);
  }
  std::ranges::sort(order, {}, &IndexEntry::offset);
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i]->offset < order[i - 1]->offset + order[i - 1]->length)
      return Wrong(*order[i], "overlaps '" + order[i - 1]->name + "'");
  }
  return Ok();
}

Status RequireComplete(const Manifest& manifest) {
  for (const Group& group : manifest.index.groups) {
    const std::vector<Range> stored = MUSTER_TRY(Stored(manifest, group.name));
    for (const IndexEntry& entry : manifest.index.entries) {
      if (entry.length == 0) continue;
      const auto after = std::ranges::upper_bound(stored, entry.offset, {}, &Range::begin);
      const bool held =
          after != stored.begin() && std::prev(after)->end >= entry.offset + entry.length;
      if (!held)
        return Error(Code::kPrecondition, "tensor '" + entry.name + "' of group '" + group.name +
                                              "' is not stored completely by any rank");
    }
  }
  return Ok();
}

Status RequireSame(const Manifest& manifest, std::string_view model, const FlatIndex& expected) {
  const auto differs = [](std::string what) {
    return Error(
        Code::kPrecondition, std::move(what),
        "resume with the configuration that wrote it, or choose another checkpoint folder");
  };
  if (manifest.model != model)
    return differs("the checkpoint is of model '" + manifest.model + "', not '" +
                   std::string(model) + "'");
  std::map<std::string_view, const IndexEntry*> stored;
  for (const IndexEntry& entry : manifest.index.entries) stored[entry.name] = &entry;
  for (const IndexEntry& entry : expected.entries) {
    const auto found = stored.find(entry.name);
    if (found == stored.end())
      return differs("the checkpoint lacks tensor '" + entry.name + "' of the model");
    if (found->second->shape != entry.shape)
      return differs("tensor '" + entry.name + "' has shape " + ShapeText(found->second->shape) +
                     " in the checkpoint and " + ShapeText(entry.shape) + " in the model");
    stored.erase(found);
  }
  if (!stored.empty())
    return differs("the checkpoint has tensor '" + std::string(stored.begin()->first) +
                   "', which the model lacks");
  for (const Group& group : expected.groups) {
    const auto found = std::ranges::find(manifest.index.groups, group.name, &Group::name);
    if (found == manifest.index.groups.end())
      return differs("the checkpoint has no group '" + group.name + "'");
    if (found->dtype != group.dtype)
      return differs("group '" + group.name + "' is " + std::string(NameOf(found->dtype)) +
                     " in the checkpoint and " + std::string(NameOf(group.dtype)) +
                     " in the model");
  }
  return Ok();
}

}  // namespace muster::checkpoint
