// SPDX-License-Identifier: Apache-2.0
#include "copy_targets.h"

#include <sys/stat.h>

#include "base/coding.h"
#include "checks.h"
#include "copy/message.h"

namespace varve::fuzz {
namespace {

copy::ChangeBatch sample_batch() {
  copy::ChangeBatch batch;
  copy::Change change;
  change.kind = copy::ChangeKind::kMake;
  change.name = "file";
  change.mode = S_IFREG | 0644;
  change.uid = 1000;
  change.mtime = {1700000000, 5};
  batch.changes.push_back(change);
  change = {};
  change.kind = copy::ChangeKind::kData;
  change.name = "file";
  change.offset = 4096;
  change.chunks = {{8192, Fingerprint{std::byte{1}}, {}}, {100, Fingerprint{std::byte{2}}, {}}};
  batch.changes.push_back(change);
  change = {};
  change.kind = copy::ChangeKind::kHole;
  change.name = "file";
  change.offset = 1U << 20;
  change.bytes = 4096;
  batch.changes.push_back(change);
  change = {};
  change.kind = copy::ChangeKind::kAttributes;
  change.name = "file";
  change.mode = S_IFREG | 0644;
  change.size = 2U << 20;
  change.xattrs = {{"user.a", "1"}, {"user.b", std::string(100, 'x')}};
  batch.changes.push_back(change);
  change = {};
  change.kind = copy::ChangeKind::kLink;
  change.name = "link";
  change.target = "a/b";
  batch.changes.push_back(change);
  change = {};
  change.kind = copy::ChangeKind::kEnter;
  change.name = "a";
  batch.changes.push_back(change);
  batch.changes.emplace_back();
  change.kind = copy::ChangeKind::kRemove;
  batch.changes.push_back(change);
  return batch;
}

VersionOrigin sample_origin() {
  return {std::string(32, 'a'), SeriesId{1}, VersionNumber{2}, {3, 4}, true};
}

template <typename Decode, typename Encode>
void settles_in_copy(std::span<const std::byte> input, const Decode& decode, const Encode& encode) {
  const auto first = decode(input);
  if (!first) return;
  const std::string once = encode(*first);
  const auto second = decode(base::as_bytes(once));
  require(second.has_value(), "an encoded message can be decoded");
  require(encode(*second) == once, "decoding and encoding changes nothing");
}

}  // namespace

void copy_request(std::span<const std::byte> input) {
  settles_in_copy(input, copy::decode_request, copy::encode_request);
}

std::vector<std::string> copy_request_seeds() {
  copy::CopyBegin begin;
  begin.origin = sample_origin();
  copy::BesideFile file;
  file.name = "rules";
  file.content = "keep";
  copy::HelloRequest encrypted;
  encrypted.setup.kind = TargetKind::kExistingEncrypted;
  const copy::Request requests[] = {
      copy::HelloRequest(),
      encrypted,
      copy::SeriesRequest(),
      copy::VersionsRequest{SeriesId{1}},
      copy::CreateSeriesRequest{"s", {}},
      copy::RenameVersionRequest{SeriesId{1}, VersionNumber{2}, "name"},
      copy::LockRequest{SeriesId{1}, VersionNumber{2}, {3, 4}},
      copy::DeleteRequest{SeriesId{1}, {VersionNumber{2}, VersionNumber{3}}},
      copy::BesideRequest{SeriesId{1}, {file}},
      begin,
      sample_batch(),
      copy::FillRequest{{"", "bytes", std::string(1000, 'y')}},
      copy::CheckRequest{SeriesId{1}, VersionNumber{2}, true, sample_batch()},
      copy::CopySeal{"name", Timestamp{5, 6}, false, 7},
      copy::FinishRequest(),
  };
  std::vector<std::string> seeds;
  for (const auto& request : requests) seeds.push_back(copy::encode_request(request));
  return seeds;
}

void copy_answer(std::span<const std::byte> input) {
  settles_in_copy(input, copy::decode_answer, copy::encode_answer);
}

std::vector<std::string> copy_answer_seeds() {
  copy::TargetVersion version;
  version.number = VersionNumber{7};
  version.name = "name";
  version.origin = sample_origin();
  const copy::Answer answers[] = {
      copy::DoneAnswer(),
      Error(ErrorCode::kNoSpace, "the disk is full"),
      copy::HelloAnswer{std::string(32, 'b')},
      std::vector<copy::TargetSeries>{{SeriesId{1}, "s"}},
      std::vector<copy::TargetVersion>{version, {}},
      copy::NumberAnswer{5},
      copy::ReasonsAnswer{{"locked"}},
      std::vector<bool>{true, false, true, true, false, false, false, true, true},
      std::vector<copy::Difference>{{3, "another size"}},
      version,
  };
  std::vector<std::string> seeds;
  for (const auto& answer : answers) seeds.push_back(copy::encode_answer(answer));
  return seeds;
}

}  // namespace varve::fuzz
