// SPDX-License-Identifier: Apache-2.0
#include "control/protocol.h"

#include <gtest/gtest.h>

namespace varve::control {
namespace {

TEST(ControlProtocol, SealRequestRoundTripsWithAnyBytesInNames) {
  Request request;
  request.operation = Operation::kSeal;
  request.seal = {.version = "a\xff\"\n/b", .new_name = "new", .wait = true, .keep = true};
  const std::string line = encode(request);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto decoded = decode_request(line);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->operation, Operation::kSeal);
  EXPECT_EQ(decoded->seal.version, request.seal.version);
  EXPECT_EQ(decoded->seal.new_name, "new");
  EXPECT_TRUE(decoded->seal.wait);
  EXPECT_TRUE(decoded->seal.keep);
}

TEST(ControlProtocol, ErrorRoundTripsWithItsCode) {
  Reply reply;
  reply.error = Error(ErrorCode::kBusy, "files are open");
  const std::string line = encode(reply);
  EXPECT_NE(line.find("\"exit\":1"), std::string::npos) << line;
  const auto decoded = decode_reply(line);
  ASSERT_TRUE(decoded);
  ASSERT_TRUE(decoded->error);
  EXPECT_EQ(decoded->error->code(), ErrorCode::kBusy);
  EXPECT_EQ(decoded->error->message(), "files are open");
}

ErrorCode code_after_the_wire(ErrorCode code) {
  Reply reply;
  reply.error = Error(code, "why");
  const auto decoded = decode_reply(encode(reply));
  return decoded && decoded->error ? decoded->error->code() : ErrorCode::kCorrupt;
}

TEST(ControlProtocol, CodeThatOlderClientsDoNotKnowIsSentAsTheNearestOne) {
  EXPECT_EQ(code_after_the_wire(ErrorCode::kUnavailable), ErrorCode::kUnavailable);
  EXPECT_EQ(code_after_the_wire(ErrorCode::kAttributeTooLarge), ErrorCode::kTooLarge);
  EXPECT_EQ(code_after_the_wire(ErrorCode::kPastEnd), ErrorCode::kNotFound);
  EXPECT_EQ(code_after_the_wire(ErrorCode::kBadHandle), ErrorCode::kInvalid);
}

TEST(ControlProtocol, ErrorOfAnotherVersionOfVarveIsUnderstood) {
  const auto older =
      decode_reply(R"({"ok":false,"code":"busy","message":"files are open","errno":16,"exit":1})");
  ASSERT_TRUE(older && older->error);
  EXPECT_EQ(older->error->code(), ErrorCode::kBusy);
  const auto newer = decode_reply(R"({"ok":false,"code":"dusty","message":"clean the disk"})");
  ASSERT_TRUE(newer && newer->error);
  EXPECT_EQ(newer->error->code(), ErrorCode::kIo);
  EXPECT_EQ(newer->error->message(), "clean the disk");
}

TEST(ControlProtocol, VersionRoundTrips) {
  Reply reply;
  reply.version = VersionInfo{.series = SeriesId{4},
                              .number = VersionNumber{5},
                              .series_name = "laptop",
                              .name = "mon\xc3\xa9",
                              .state = VersionState::kSealed,
                              .opened_at = {-5, 1},
                              .sealed_at = {1700000000, 999999999},
                              .entries = 6,
                              .logical_bytes = 1ULL << 63,
                              .unique_bytes = 8,
                              .stored_bytes = 9};
  const auto decoded = decode_reply(encode(reply));
  ASSERT_TRUE(decoded);
  ASSERT_TRUE(decoded->version);
  EXPECT_EQ(decoded->version->series, SeriesId{4});
  EXPECT_EQ(decoded->version->name, "mon\xc3\xa9");
  EXPECT_EQ(decoded->version->state, VersionState::kSealed);
  EXPECT_EQ(decoded->version->opened_at, (Timestamp{-5, 1}));
  EXPECT_EQ(decoded->version->logical_bytes, 1ULL << 63);
}

TEST(ControlProtocol, OpenVersionsRoundTripOrAreNone) {
  Request request;
  request.operation = Operation::kOpenVersions;
  request.series = "caf\xc3\xa9";
  const auto asked = decode_request(encode(request));
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->operation, Operation::kOpenVersions);
  EXPECT_EQ(asked->series, request.series);
  Reply reply;
  reply.versions.emplace();
  const auto none = decode_reply(encode(reply));
  ASSERT_TRUE(none && none->versions);
  EXPECT_TRUE(none->versions->empty());
  VersionInfo& mon = reply.versions->emplace_back();
  mon.name = "mon";
  mon.entries = 6;
  const auto one = decode_reply(encode(reply));
  ASSERT_TRUE(one && one->versions);
  ASSERT_EQ(one->versions->size(), 1U);
  EXPECT_EQ(one->versions->front().name, "mon");
  EXPECT_EQ(one->versions->front().entries, 6U);
  EXPECT_FALSE(decode_reply(R"({"ok":true,"versions":[{"name":"mon"}]})"));
}

TEST(ControlProtocol, DeleteRequestRoundTrips) {
  Request request;
  request.operation = Operation::kDelete;
  request.removal = {.series = "caf\xc3\xa9",
                     .versions = {VersionNumber{3}, VersionNumber{0xffffffff}},
                     .forecast_only = true,
                     .options = {.skip_held = true, .force = false, .force_clock = true}};
  const auto decoded = decode_request(encode(request));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->operation, Operation::kDelete);
  EXPECT_EQ(decoded->removal.series, request.removal.series);
  EXPECT_EQ(decoded->removal.versions, request.removal.versions);
  EXPECT_TRUE(decoded->removal.forecast_only);
  EXPECT_TRUE(decoded->removal.options.skip_held);
  EXPECT_FALSE(decoded->removal.options.force);
  EXPECT_TRUE(decoded->removal.options.force_clock);
}

TEST(ControlProtocol, LockAndArrangeRequestsRoundTrip) {
  Request request;
  request.operation = Operation::kLock;
  request.lock = {.series = "s", .version = VersionNumber{7}, .until = {1800000000, 5}};
  const auto lock = decode_request(encode(request));
  ASSERT_TRUE(lock);
  EXPECT_EQ(lock->lock.version, VersionNumber{7});
  EXPECT_EQ(lock->lock.until, (Timestamp{1800000000, 5}));
  request.operation = Operation::kArrange;
  request.arrange = {.series = "s", .bytes_per_second = 1ULL << 40};
  const auto arrange = decode_request(encode(request));
  ASSERT_TRUE(arrange);
  EXPECT_EQ(arrange->arrange.series, "s");
  EXPECT_EQ(arrange->arrange.bytes_per_second, 1ULL << 40);
}

TEST(ControlProtocol, ArrangeSettingsRoundTripOrAreAbsent) {
  Request request;
  request.operation = Operation::kArrangeSettings;
  const auto without = decode_request(encode(request));
  ASSERT_TRUE(without);
  EXPECT_FALSE(without->settings);
  request.settings = ArrangeSettings{.policy = ArrangePolicyKind::kBatched,
                                     .batch = 11,
                                     .dead_permille = 12,
                                     .fan = 13,
                                     .window = 14};
  const auto with = decode_request(encode(request));
  ASSERT_TRUE(with);
  ASSERT_TRUE(with->settings);
  EXPECT_EQ(with->settings->policy, ArrangePolicyKind::kBatched);
  EXPECT_EQ(with->settings->batch, 11U);
  EXPECT_EQ(with->settings->dead_permille, 12U);
  EXPECT_EQ(with->settings->fan, 13U);
  EXPECT_EQ(with->settings->window, 14U);
}

TEST(ControlProtocol, SeriesSettingsRoundTripByTheirNames) {
  Request request;
  request.operation = Operation::kSeriesSettings;
  const auto none = decode_request(encode(request));
  ASSERT_TRUE(none);
  EXPECT_EQ(none->series_settings.series, "");
  EXPECT_FALSE(none->series_settings.changes.placement || none->series_settings.changes.rewrite);
  request.series_settings = {"caf\xc3\xa9", {Placement::kLineagePool, Rewrite::kHarCbr}};
  const std::string line = encode(request);
  EXPECT_NE(line.find("\"lineage+pool\""), std::string::npos) << line;
  const auto both = decode_request(line);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->series_settings.series, "caf\xc3\xa9");
  EXPECT_EQ(both->series_settings.changes.placement, Placement::kLineagePool);
  EXPECT_EQ(both->series_settings.changes.rewrite, Rewrite::kHarCbr);
  Reply reply;
  reply.series_settings = {Placement::kPool, Rewrite::kCap};
  const auto back = decode_reply(encode(reply));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->series_settings, reply.series_settings);
}

TEST(ControlProtocol, SeriesSettingsOfAnotherFormAreNotUnderstood) {
  const auto code = [](const std::string& members) {
    const auto request = decode_request(R"({"op":"series_settings","protocol":)" +
                                        std::to_string(kProtocol) + members + "}");
    return request ? ErrorCode::kInterrupted : request.error().code();
  };
  EXPECT_EQ(code(R"(,"series":"s","changes":{})"), ErrorCode::kInterrupted);
  for (const char* bad :
       {R"(,"changes":{})", R"(,"series":"s")", R"(,"series":"s","changes":[])",
        R"(,"series":"s","changes":{"placement":"forest"})",
        R"(,"series":"s","changes":{"placement":1})", R"(,"series":7,"changes":{})",
        R"(,"series":"s","changes":{"rewrite":""})"}) {
    EXPECT_EQ(code(bad), ErrorCode::kInvalid) << bad;
  }
  for (const char* bad :
       {"{}", R"({"placement":"pool"})", R"({"placement":"x","rewrite":"har"})"}) {
    const auto reply = decode_reply(R"({"ok":true,"series_settings":)" + std::string(bad) + "}");
    EXPECT_FALSE(reply) << bad;
  }
}

TEST(ControlProtocol, ClaimsAndRenamesRoundTrip) {
  Request request;
  request.operation = Operation::kClaim;
  request.claim = {"s/v", {-5, 7}};
  const auto claim = decode_request(encode(request));
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->claim.version, "s/v");
  EXPECT_EQ(claim->claim.time, (Timestamp{-5, 7}));
  request.operation = Operation::kRename;
  request.rename = {"s/v\xff", "w"};
  const auto rename = decode_request(encode(request));
  ASSERT_TRUE(rename);
  EXPECT_EQ(rename->rename.name, "s/v\xff");
  EXPECT_EQ(rename->rename.new_name, "w");
  const std::string protocol = std::to_string(kProtocol);
  EXPECT_FALSE(decode_request(R"({"op":"claim","version":"s/v","protocol":)" + protocol + "}"));
  EXPECT_FALSE(decode_request(R"({"op":"rename","name":"s","protocol":)" + protocol + "}"));
}

TEST(ControlProtocol, KeysRoundTrip) {
  Request request;
  request.operation = Operation::kKeys;
  request.keys.superblock = "varve = 1\nkey_slot_1 = a\xff\n";
  const auto back = decode_request(encode(request));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->keys.superblock, request.keys.superblock);
  EXPECT_FALSE(decode_request(R"({"op":"keys","protocol":)" + std::to_string(kProtocol) + "}"));
}

TEST(ControlProtocol, KnownDamageRoundTrips) {
  Request request;
  request.operation = Operation::kKnownDamage;
  request.damage = {.settles = true, .version = "s/v\xff"};
  const auto asked = decode_request(encode(request));
  ASSERT_TRUE(asked);
  EXPECT_TRUE(asked->damage.settles);
  EXPECT_EQ(asked->damage.version, "s/v\xff");
  EXPECT_FALSE(decode_request(R"({"op":"known_damage","settles":true,"protocol":)" +
                              std::to_string(kProtocol) + "}"));
  Reply reply;
  reply.damage = DamageReply{3, {2, {"a/b\xff", "c"}}};
  const auto back = decode_reply(encode(reply));
  ASSERT_TRUE(back && back->damage);
  EXPECT_EQ(back->damage->changed, 3U);
  EXPECT_EQ(back->damage->lost.files, 2U);
  EXPECT_EQ(back->damage->lost.names, reply.damage->lost.names);
  for (const char* const bad :
       {"1", "{}", R"({"changed":1,"files":1})", R"({"changed":1,"files":1,"names":[1]})",
        R"({"changed":-1,"files":1,"names":[]})"}) {
    EXPECT_FALSE(decode_reply(R"({"ok":true,"known_damage":)" + std::string(bad) + "}")) << bad;
  }
  reply.damage->lost.names.resize(kLostFilesNamed + 1);
  EXPECT_FALSE(decode_reply(encode(reply)));
}

TEST(ControlProtocol, StreamsOfThePoolRoundTrip) {
  Request request;
  request.operation = Operation::kPoolStreams;
  ASSERT_TRUE(decode_request(encode(request)));
  PoolStream stream;
  stream.series = SeriesId{3};
  stream.name = "a\xff";
  stream.is_open = true;
  stream.entries = 1;
  stream.locality = 2;
  stream.lookups = 3;
  stream.hits = 4;
  stream.run_threshold = 5;
  stream.is_admitted = false;
  Reply reply;
  reply.streams = {{}, stream};
  const auto back = decode_reply(encode(reply));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->streams, reply.streams);
  for (const char* const bad : {"1", "[1]", "[{}]", R"([{"series":3}])"}) {
    EXPECT_FALSE(decode_reply(R"({"ok":true,"streams":)" + std::string(bad) + "}")) << bad;
  }
}

TEST(ControlProtocol, IndexOfThePoolRoundTrips) {
  Request request;
  request.operation = Operation::kPoolIndex;
  const auto none = decode_request(encode(request));
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->pool_index.choice);
  request.pool_index.choice = PoolIndexChoice{PoolIndexKind::kZeroChunk, 7};
  const auto seven = decode_request(encode(request));
  ASSERT_TRUE(seven);
  EXPECT_EQ(seven->pool_index.choice, request.pool_index.choice);
  const auto unknown =
      decode_request(R"({"op":"pool_index","protocol":)" + std::to_string(kProtocol) +
                     R"(,"pool_index":"zero-chunk:5"})");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), ErrorCode::kInvalid);
  Reply reply;
  reply.pool_index = PoolIndexChoice();
  const auto back = decode_reply(encode(reply));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->pool_index, PoolIndexChoice());
  EXPECT_FALSE(decode_reply(R"({"ok":true,"pool_index":"?"})"));
  EXPECT_FALSE(decode_reply(R"({"ok":true,"pool_index":1})"));
}

TEST(ControlProtocol, ForecastProgressAndReportRoundTrip) {
  Reply reply;
  reply.forecast = DeletionForecast{.versions = {VersionNumber{1}, VersionNumber{9}},
                                    .held = {{VersionNumber{4}, "caf\xc3\xa9 is locked"}},
                                    .freed_bytes = 1ULL << 50,
                                    .dead_bytes = 2,
                                    .chunks = 3,
                                    .chunk_bytes = 4,
                                    .waiting_bytes = 5,
                                    .waiting_for = "open"};
  reply.progress = ArrangeProgress{.bytes_written = 5, .bytes_read = 6, .steps = 7};
  reply.arranged = ArrangeReport{.done = *reply.progress, .finished = true};
  const auto decoded = decode_reply(encode(reply));
  ASSERT_TRUE(decoded);
  ASSERT_TRUE(decoded->forecast && decoded->progress && decoded->arranged);
  EXPECT_EQ(decoded->forecast->versions, reply.forecast->versions);
  ASSERT_EQ(decoded->forecast->held.size(), 1U);
  EXPECT_EQ(decoded->forecast->held[0].number, VersionNumber{4});
  EXPECT_EQ(decoded->forecast->held[0].reason, "caf\xc3\xa9 is locked");
  EXPECT_EQ(decoded->forecast->waiting_bytes, 5U);
  EXPECT_EQ(decoded->forecast->waiting_for, "open");
  EXPECT_EQ(decoded->forecast->freed_bytes, 1ULL << 50);
  EXPECT_EQ(decoded->forecast->dead_bytes, 2U);
  EXPECT_EQ(decoded->forecast->chunks, 3U);
  EXPECT_EQ(decoded->forecast->chunk_bytes, 4U);
  EXPECT_EQ(decoded->progress->bytes_read, 6U);
  EXPECT_EQ(decoded->arranged->done.steps, 7U);
  EXPECT_TRUE(decoded->arranged->finished);
}

TEST(ControlProtocol, IdentityRoundTrips) {
  Reply reply;
  reply.identity = Identity{.protocol = kProtocol,
                            .process = 12,
                            .repository = "/srv/\xff",
                            .device = 3,
                            .inode = 1ULL << 63,
                            .mount_device = 44,
                            .mount_root = "s"};
  const auto decoded = decode_reply(encode(reply));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->identity, reply.identity);
  EXPECT_FALSE(decoded->working);
}

TEST(ControlProtocol, WrongInputReturnsInvalid) {
  for (const char* line : {"", "{", "[]", "null", "{}", "{\"op\":1}", "{\"op\":\"format\"}",
                           "{\"op\":\"seal\"}", "{\"op\":\"seal\",\"version\":[256]}",
                           "{\"op\":\"seal\",\"version\":\"a/b\",\"wait\":\"yes\"}",
                           "{\"op\":\"seal\",\"version\":\"a/b\",\"wait\":true,"
                           "\"wait_seconds\":9223372037000000000}",
                           "{\"op\":\"clone\",\"version\":\"a/b\"}",
                           "{\"op\":\"delete\",\"series\":\"a\",\"forecast\":false}",
                           "{\"op\":\"delete\",\"series\":\"a\",\"versions\":[1]}",
                           "{\"op\":\"delete\",\"series\":\"a\",\"versions\":[4294967296],"
                           "\"forecast\":false}",
                           "{\"op\":\"lock\",\"series\":\"a\",\"versions\":[1]}",
                           "{\"op\":\"lock\",\"series\":\"a\",\"versions\":[1,2],"
                           "\"until\":{\"seconds\":1,\"nanoseconds\":0}}",
                           "{\"op\":\"arrange\",\"series\":\"a\"}",
                           "{\"op\":\"arrange_settings\",\"settings\":{\"policy\":\"best\"}}"}) {
    std::string text = line;
    if (text.starts_with("{\"op\":\"")) text.insert(1, "\"protocol\":2,");
    const auto request = decode_request(text);
    ASSERT_FALSE(request) << text;
    EXPECT_EQ(request.error().code(), ErrorCode::kInvalid) << text;
    EXPECT_FALSE(decode_reply(line)) << line;
  }
}

// Each field of a reply is in one list, by which a daemon writes and a command reads.
TEST(ControlProtocol, ReplyWithAllFieldsHasTheTextOfEarlierVersions) {
  const std::string line =
      R"({"all_read":true,"arranged":{"bytes_read":2,"bytes_written":1,"damaged":4,"finished")"
      R"(:true,"steps":3},"forecast":{"chunk_bytes":4,"chunks":3,"dead_bytes":2,"freed_bytes")"
      R"(:1,"held":[{"reason":"locked","version":3}],"versions":[2],"waiting_bytes":5,"waitin)"
      R"(g_for":"home/x"},"identity":{"device":4,"inode":5,"mount_device":6,"mount_namespace")"
      R"(:7,"mount_root":"home","process":3,"protocol":2,"repository":"/r"},"known_damage":{")"
      R"(changed":3,"files":4,"names":[{"name":"n"}]},"metrics":[{"help":"x","kind":"counter")"
      R"(,"labels":[{"name":"l","value":"v"}],"name":"varve_x_total","unit":"none","value":1})"
      R"(],"next":{"claimed_at":{"nanoseconds":10,"seconds":9},"entries":5,"logical_bytes":6,)"
      R"("name":"b","number":2,"opened_at":{"nanoseconds":2,"seconds":1},"problems":11,"seale)"
      R"(d":true,"sealed_at":{"nanoseconds":4,"seconds":3},"series":"home","series_id":1,"sto)"
      R"(red_bytes":8,"unique_bytes":7},"ok":true,"pool_index":"exact","progress":{"bytes_rea)"
      R"(d":2,"bytes_written":1,"steps":3},"series_settings":{"placement":"lineage","rewrite")"
      R"(:"none"},"settings":{"batch":10,"dead_permille":70,"fan":20,"parity_percent":0,"poli)"
      R"(cy":"tiered","window":4},"stored":{"bytes":4,"entries":1,"left_out":[{"text":"l"}],")"
      R"(other_devices":[{"text":[111,255]}],"problems":[{"text":"p"}],"removed":3,"unchanged)"
      R"(":2,"version":{"claimed_at":{"nanoseconds":10,"seconds":9},"entries":5,"logical_byte)"
      R"(s":6,"name":"b","number":2,"opened_at":{"nanoseconds":2,"seconds":1},"problems":11,")"
      R"(sealed":true,"sealed_at":{"nanoseconds":4,"seconds":3},"series":"home","series_id":1)"
      R"(,"stored_bytes":8,"unique_bytes":7}},"streams":[{"admitted":false,"entries":2,"hits")"
      R"(:5,"locality":3,"lookups":4,"name":"home","open":true,"run_threshold":6,"series":1}])"
      R"(,"transfer":{"bytes":2,"bytes_total":3,"files":1},"upkeep":{"arrange_bytes_per_secon)"
      R"(d":1000,"by_claimed":true,"daily":0,"guards_sources":false,"hourly":0,"last":1,"mont)"
      R"(hly":0,"object_lock_days":3,"object_lock_governance":false,"weekly":0,"within_second)"
      R"(s":60,"yearly":6},"version":{"entries":5,"logical_bytes":6,"name":"b","number":2,"op)"
      R"(ened_at":{"nanoseconds":2,"seconds":1},"sealed":true,"sealed_at":{"nanoseconds":4,"s)"
      R"(econds":3},"series":"home","series_id":1,"stored_bytes":8,"unique_bytes":7},"version)"
      R"(s":[{"entries":5,"logical_bytes":6,"name":"b","number":2,"opened_at":{"nanoseconds":)"
      R"(2,"seconds":1},"sealed":true,"sealed_at":{"nanoseconds":4,"seconds":3},"series":"hom)"
      R"(e","series_id":1,"stored_bytes":8,"unique_bytes":7},{"claimed_at":{"nanoseconds":10,)"
      R"("seconds":9},"entries":5,"logical_bytes":6,"name":"b","number":2,"opened_at":{"nanos)"
      R"(econds":2,"seconds":1},"problems":11,"sealed":true,"sealed_at":{"nanoseconds":4,"sec)"
      R"(onds":3},"series":"home","series_id":1,"stored_bytes":8,"unique_bytes":7}],"warning")"
      R"(:"late","working":true})";
  const auto decoded = decode_reply(line);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(encode(*decoded), line);
}

}  // namespace
}  // namespace varve::control
