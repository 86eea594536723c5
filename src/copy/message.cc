// SPDX-License-Identifier: Apache-2.0
#include "copy/message.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "base/coding.h"
#include "copy/change_codec.h"
#include "varve/beside.h"

namespace varve::copy {
namespace {

constexpr std::size_t kTextBytesMax = 65536;  // Of a reason or an error.
constexpr std::size_t kIdBytes = 32;

using base::ByteWriter;

// Each type of message has put() and take(). take() fails the reader for bad values.

template <typename Number>
Number take_number(MessageReader& in) {
  const std::uint64_t value = in.varint();
  if (value > UINT32_MAX) in.fail();
  return static_cast<Number>(value);
}
template <typename Number>
void put_number(ByteWriter& out, Number number) {
  out.varint(static_cast<std::uint32_t>(number));
}
bool take_bool(MessageReader& in) {
  const auto value = in.u8();
  if (value > 1) in.fail();
  return value == 1;
}
void put_bool(ByteWriter& out, bool value) { out.u8(value ? 1 : 0); }
std::string take_name(MessageReader& in) { return in.owned_text(kNameBytesMax); }

/// Takes a list whose elements have at least one byte each.
template <typename Element, typename Take>
void take_list(MessageReader& in, std::vector<Element>& list, const Take& take_one) {
  const std::uint64_t count = in.varint();
  in.reserve(list, count, 1);
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) list.push_back(take_one(in));
}
template <typename Element, typename Put>
void put_list(ByteWriter& out, const std::vector<Element>& list, const Put& put_one) {
  out.varint(list.size());
  for (const Element& element : list) put_one(out, element);
}

void put(ByteWriter& out, const SeriesSettings& settings) {
  out.u8(static_cast<std::uint8_t>(settings.placement));
  out.u8(static_cast<std::uint8_t>(settings.rewrite));
}
void take(MessageReader& in, SeriesSettings& settings) {
  settings.placement = static_cast<Placement>(in.u8());
  settings.rewrite = static_cast<Rewrite>(in.u8());
}

void put(ByteWriter& out, const HelloRequest& hello) {
  const auto& [parameters, new_series, arrange, pool_index, kind] = hello.setup;
  put_bool(out, hello.dry_run);
  out.u8(static_cast<std::uint8_t>(kind));
  out.sized_text(parameters.chunker);
  out.varint(parameters.chunk_bytes_min);
  out.varint(parameters.chunk_bytes_avg);
  out.varint(parameters.chunk_bytes_max);
  out.u8(static_cast<std::uint8_t>(parameters.codec));
  out.u8(static_cast<std::uint8_t>(parameters.zstd_level));
  out.u8(static_cast<std::uint8_t>(parameters.placement));
  put(out, new_series);
  out.u8(static_cast<std::uint8_t>(arrange.policy));
  out.varint(arrange.batch);
  out.varint(arrange.dead_permille);
  out.varint(arrange.fan);
  out.varint(arrange.window);
  out.varint(arrange.parity_percent);
  out.u8(static_cast<std::uint8_t>(pool_index.kind));
  out.varint(pool_index.hook_bits);
}
void take(MessageReader& in, HelloRequest& hello) {
  auto& [parameters, new_series, arrange, pool_index, kind] = hello.setup;
  hello.dry_run = take_bool(in);
  kind = static_cast<TargetKind>(in.u8());
  parameters.chunker = take_name(in);
  parameters.chunk_bytes_min = take_number<std::uint32_t>(in);
  parameters.chunk_bytes_avg = take_number<std::uint32_t>(in);
  parameters.chunk_bytes_max = take_number<std::uint32_t>(in);
  parameters.codec = static_cast<Codec>(in.u8());
  parameters.zstd_level = in.u8();
  parameters.placement = static_cast<Placement>(in.u8());
  take(in, new_series);
  arrange.policy = static_cast<ArrangePolicyKind>(in.u8());
  arrange.batch = take_number<std::uint32_t>(in);
  arrange.dead_permille = take_number<std::uint32_t>(in);
  arrange.fan = take_number<std::uint32_t>(in);
  arrange.window = take_number<std::uint32_t>(in);
  arrange.parity_percent = take_number<std::uint32_t>(in);
  pool_index.kind = static_cast<PoolIndexKind>(in.u8());
  pool_index.hook_bits = take_number<std::uint32_t>(in);
  const bool known =
      parameters.codec <= Codec::kZstd && parameters.placement <= Placement::kPool &&
      new_series.placement <= Placement::kPool && new_series.rewrite <= Rewrite::kHarCbr &&
      pool_index.kind <= PoolIndexKind::kStream && kind <= TargetKind::kExistingEncrypted;
  if (!known) in.fail();
}

void put(ByteWriter& out, const VersionOrigin& origin) {
  out.sized_text(origin.repository);
  put_number(out, origin.series);
  put_number(out, origin.number);
  encode_time(out, origin.sealed_at);
  put_bool(out, origin.whole);
}
void take(MessageReader& in, VersionOrigin& origin) {
  origin.repository = in.owned_text(kIdBytes);
  origin.series = take_number<SeriesId>(in);
  origin.number = take_number<VersionNumber>(in);
  origin.sealed_at = decode_time(in);
  origin.whole = take_bool(in);
  const bool is_id = origin.repository.size() == kIdBytes &&
                     origin.repository.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_id || origin.series == SeriesId{} || origin.number == VersionNumber{}) in.fail();
}

void put(ByteWriter& /*out*/, const SeriesRequest& /*request*/) {}
void take(MessageReader& /*in*/, SeriesRequest& /*request*/) {}
void put(ByteWriter& out, const VersionsRequest& request) { put_number(out, request.series); }
void take(MessageReader& in, VersionsRequest& request) {
  request.series = take_number<SeriesId>(in);
}
void put(ByteWriter& out, const CreateSeriesRequest& request) {
  out.sized_text(request.name);
  put(out, request.settings);
}
void take(MessageReader& in, CreateSeriesRequest& request) {
  request.name = take_name(in);
  take(in, request.settings);
  if (request.settings.placement > Placement::kPool ||
      request.settings.rewrite > Rewrite::kHarCbr) {
    in.fail();
  }
}
void put(ByteWriter& out, const RenameSeriesRequest& request) {
  put_number(out, request.series);
  out.sized_text(request.name);
}
void take(MessageReader& in, RenameSeriesRequest& request) {
  request.series = take_number<SeriesId>(in);
  request.name = take_name(in);
}
void put(ByteWriter& out, const RenameVersionRequest& request) {
  put_number(out, request.series);
  put_number(out, request.number);
  out.sized_text(request.name);
}
void take(MessageReader& in, RenameVersionRequest& request) {
  request.series = take_number<SeriesId>(in);
  request.number = take_number<VersionNumber>(in);
  request.name = take_name(in);
}
void put(ByteWriter& out, const LockRequest& request) {
  put_number(out, request.series);
  put_number(out, request.number);
  encode_time(out, request.until);
}
void take(MessageReader& in, LockRequest& request) {
  request.series = take_number<SeriesId>(in);
  request.number = take_number<VersionNumber>(in);
  request.until = decode_time(in);
}
void put(ByteWriter& out, const DeleteRequest& request) {
  put_number(out, request.series);
  put_list(out, request.numbers,
           [](ByteWriter& to, VersionNumber number) { put_number(to, number); });
}
void take(MessageReader& in, DeleteRequest& request) {
  request.series = take_number<SeriesId>(in);
  take_list(in, request.numbers,
            [](MessageReader& from) { return take_number<VersionNumber>(from); });
}
void put(ByteWriter& out, const BesideRequest& request) {
  put_number(out, request.series);
  put_list(out, request.files, [](ByteWriter& to, const BesideFile& file) {
    to.sized_text(file.folder);
    to.sized_text(file.name);
    to.varint(file.mode);
    to.varint(file.uid);
    to.varint(file.gid);
    encode_time(to, file.mtime);
    to.sized_text(file.content);
  });
}
void take(MessageReader& in, BesideRequest& request) {
  request.series = take_number<SeriesId>(in);
  take_list(in, request.files, [](MessageReader& from) {
    BesideFile file;
    file.folder = take_name(from);
    file.name = take_name(from);
    file.mode = take_number<std::uint32_t>(from);
    file.uid = take_number<std::uint32_t>(from);
    file.gid = take_number<std::uint32_t>(from);
    file.mtime = decode_time(from);
    file.content = from.owned_text(kBesideFileBytesMax);
    return file;
  });
  if (request.files.size() > kBesideNamesMax) in.fail();
}
void put(ByteWriter& out, const CopyBegin& begin) {
  put_number(out, begin.series);
  put_number(out, begin.base);
  put(out, begin.origin);
  put_bool(out, begin.continues);
}
void take(MessageReader& in, CopyBegin& begin) {
  begin.series = take_number<SeriesId>(in);
  begin.base = take_number<VersionNumber>(in);
  take(in, begin.origin);
  begin.continues = take_bool(in);
}
void put(ByteWriter& out, const ChangeBatch& batch) { encode_batch(out, batch); }
void take(MessageReader& in, ChangeBatch& batch) { batch = decode_batch(in); }
void put(ByteWriter& out, const FillRequest& request) {
  put_list(out, request.chunks,
           [](ByteWriter& to, const std::string& chunk) { to.sized_text(chunk); });
}
void take(MessageReader& in, FillRequest& request) {
  take_list(in, request.chunks,
            [](MessageReader& from) { return from.owned_text(kChunkBytesMax); });
}
void put(ByteWriter& /*out*/, const SettleRequest& /*request*/) {}
void take(MessageReader& /*in*/, SettleRequest& /*request*/) {}
void put(ByteWriter& out, const CheckRequest& request) {
  put_number(out, request.series);
  put_number(out, request.sealed);
  put_bool(out, request.first);
  encode_batch(out, request.batch);
}
void take(MessageReader& in, CheckRequest& request) {
  request.series = take_number<SeriesId>(in);
  request.sealed = take_number<VersionNumber>(in);
  request.first = take_bool(in);
  request.batch = decode_batch(in);
}
void put(ByteWriter& out, const CopySeal& seal) {
  out.sized_text(seal.name);
  put_bool(out, seal.claimed_at.has_value());
  if (seal.claimed_at) encode_time(out, *seal.claimed_at);
  put_bool(out, seal.whole);
  out.varint(seal.problems);
}
void take(MessageReader& in, CopySeal& seal) {
  seal.name = take_name(in);
  if (take_bool(in)) seal.claimed_at = decode_time(in);
  seal.whole = take_bool(in);
  seal.problems = in.varint();
}
void put(ByteWriter& /*out*/, const DropRequest& /*request*/) {}
void take(MessageReader& /*in*/, DropRequest& /*request*/) {}
void put(ByteWriter& /*out*/, const FinishRequest& /*request*/) {}
void take(MessageReader& /*in*/, FinishRequest& /*request*/) {}

void put(ByteWriter& /*out*/, const DoneAnswer& /*answer*/) {}
void take(MessageReader& /*in*/, DoneAnswer& /*answer*/) {}
void put(ByteWriter& out, const Error& error) {
  out.u8(static_cast<std::uint8_t>(error.code()));
  out.sized_text(std::string_view(error.message()).substr(0, kTextBytesMax));
}
void take(MessageReader& in, Error& error) {
  const auto code = in.u8();
  if (code > static_cast<std::uint8_t>(ErrorCode::kIncomplete)) in.fail();
  error = Error(static_cast<ErrorCode>(code), in.owned_text(kTextBytesMax));
}
void put(ByteWriter& out, const HelloAnswer& hello) { out.sized_text(hello.repository); }
void take(MessageReader& in, HelloAnswer& hello) { hello.repository = in.owned_text(kIdBytes); }
void put(ByteWriter& out, const std::vector<TargetSeries>& all) {
  put_list(out, all, [](ByteWriter& to, const TargetSeries& series) {
    put_number(to, series.id);
    to.sized_text(series.name);
  });
}
void take(MessageReader& in, std::vector<TargetSeries>& all) {
  take_list(in, all, [](MessageReader& from) {
    const auto id = take_number<SeriesId>(from);
    return TargetSeries{id, take_name(from)};
  });
}
void put(ByteWriter& out, const TargetVersion& version) {
  put_number(out, version.number);
  out.sized_text(version.name);
  put_bool(out, version.is_sealed);
  out.varint(version.entries);
  encode_time(out, version.locked_until);
  put_bool(out, version.origin.has_value());
  if (version.origin) put(out, *version.origin);
}
void take(MessageReader& in, TargetVersion& version) {
  version.number = take_number<VersionNumber>(in);
  version.name = take_name(in);
  version.is_sealed = take_bool(in);
  version.entries = in.varint();
  version.locked_until = decode_time(in);
  if (take_bool(in)) take(in, version.origin.emplace());
}
void put(ByteWriter& out, const std::vector<TargetVersion>& all) {
  put_list(out, all, [](ByteWriter& to, const TargetVersion& version) { put(to, version); });
}
void take(MessageReader& in, std::vector<TargetVersion>& all) {
  take_list(in, all, [](MessageReader& from) {
    TargetVersion version;
    take(from, version);
    return version;
  });
}
void put(ByteWriter& out, const NumberAnswer& answer) { out.varint(answer.number); }
void take(MessageReader& in, NumberAnswer& answer) { answer.number = in.varint(); }
void put(ByteWriter& out, const ReasonsAnswer& answer) {
  put_list(out, answer.reasons, [](ByteWriter& to, const std::string& reason) {
    to.sized_text(std::string_view(reason).substr(0, kTextBytesMax));
  });
}
void take(MessageReader& in, ReasonsAnswer& answer) {
  take_list(in, answer.reasons, [](MessageReader& from) { return from.owned_text(kTextBytesMax); });
}
void put(ByteWriter& out, const std::vector<bool>& wanted) {
  out.varint(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); i += 8) {
    unsigned bits = 0;
    for (std::size_t b = 0; b < 8 && i + b < wanted.size(); ++b) {
      bits |= static_cast<unsigned>(wanted[i + b]) << b;
    }
    out.u8(static_cast<std::uint8_t>(bits));
  }
}
void take(MessageReader& in, std::vector<bool>& wanted) {
  const std::uint64_t count = in.varint();
  if (count > std::uint64_t{in.left()} * 8) return in.fail();
  wanted.reserve(count);
  for (std::uint64_t i = 0; i < count; i += 8) {
    const unsigned bits = in.u8();
    const auto used = std::min<std::uint64_t>(8, count - i);
    for (std::uint64_t b = 0; b < used; ++b) wanted.push_back(((bits >> b) & 1U) != 0);
    if ((bits >> used) != 0) in.fail();
  }
}
void put(ByteWriter& out, const std::vector<Difference>& all) {
  put_list(out, all, [](ByteWriter& to, const Difference& difference) {
    to.varint(difference.change);
    to.sized_text(std::string_view(difference.reason).substr(0, kTextBytesMax));
  });
}
void take(MessageReader& in, std::vector<Difference>& all) {
  take_list(in, all, [](MessageReader& from) {
    const auto change = take_number<std::uint32_t>(from);
    return Difference{change, from.owned_text(kTextBytesMax)};
  });
}

template <typename Variant>
std::string encode(const Variant& message) {
  std::string bytes;
  ByteWriter out(bytes);
  out.u8(static_cast<std::uint8_t>(message.index() + 1));
  std::visit([&](const auto& one) { put(out, one); }, message);
  return bytes;
}

template <typename Type>
Type empty_message() {
  return {};
}
template <>
Error empty_message<Error>() {
  return {ErrorCode::kIo, ""};
}

template <typename Variant, std::size_t... kIndex>
Result<Variant> decode(std::span<const std::byte> bytes, std::index_sequence<kIndex...> /*all*/) {
  MessageReader in(bytes);
  const std::size_t type = in.u8();
  std::optional<Variant> message;
  const auto take_if = [&]<std::size_t kOne>() {
    if (type != kOne + 1) return;
    auto one = empty_message<std::variant_alternative_t<kOne, Variant>>();
    take(in, one);
    message.emplace(std::in_place_index<kOne>, std::move(one));
  };
  (take_if.template operator()<kIndex>(), ...);
  if (!message || !in.done()) return Error(ErrorCode::kCorrupt, "a message that is not valid");
  return std::move(*message);
}

}  // namespace

std::string encode_request(const Request& request) { return encode(request); }
Result<Request> decode_request(std::span<const std::byte> bytes) {
  return decode<Request>(bytes, std::make_index_sequence<std::variant_size_v<Request>>());
}
std::string encode_answer(const Answer& answer) { return encode(answer); }
Result<Answer> decode_answer(std::span<const std::byte> bytes) {
  return decode<Answer>(bytes, std::make_index_sequence<std::variant_size_v<Answer>>());
}

}  // namespace varve::copy
