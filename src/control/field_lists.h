// SPDX-License-Identifier: Apache-2.0
// The JSON form of the public types on the control socket: the lists of fields, and the words.
#pragma once

#include <optional>
#include <tuple>

#include "control/field.h"
#include "control/json_fields.h"
#include "varve/arrange.h"
#include "varve/backup.h"
#include "varve/options.h"
#include "varve/placement.h"
#include "varve/pool_index.h"
#include "varve/retention.h"
#include "varve/rewrite.h"
#include "varve/types.h"

namespace varve::control {

template <>
struct FieldsOf<Timestamp> {
  static constexpr auto list() {
    return std::tuple{Field{"seconds", &Timestamp::seconds},
                      Field{"nanoseconds", &Timestamp::nanoseconds}};
  }
};

/// In JSON, a version has a boolean `sealed`.
template <>
struct JsonOf<VersionState> {
  static Json write(VersionState state) { return state == VersionState::kSealed; }
  static std::optional<VersionState> read(const Json& json) {
    const auto sealed = json.flag();
    if (!sealed) return std::nullopt;
    return *sealed ? VersionState::kSealed : VersionState::kOpen;
  }
};

template <>
struct FieldsOf<VersionInfo> {
  static constexpr auto list() {
    using V = VersionInfo;
    return std::tuple{Field{"series_id", &V::series},
                      Field{"number", &V::number},
                      Field{"series", &V::series_name},
                      Field{"name", &V::name},
                      Field{"sealed", &V::state},
                      Field{"opened_at", &V::opened_at},
                      Field{"sealed_at", &V::sealed_at},
                      Field{"entries", &V::entries},
                      Field{"logical_bytes", &V::logical_bytes},
                      Field{"unique_bytes", &V::unique_bytes},
                      Field{"stored_bytes", &V::stored_bytes},
                      Field{"claimed_at", &V::claimed_at},
                      Field{"problems", &V::problems, Presence::kUnlessDefault}};
  }
};

template <>
struct FieldsOf<VersionKey> {
  static constexpr auto list() {
    return std::tuple{Field{"series", &VersionKey::series}, Field{"version", &VersionKey::number}};
  }
};

template <>
struct FieldsOf<DeletionOptions> {
  static constexpr auto list() {
    using D = DeletionOptions;
    return std::tuple{Field{"skip_held", &D::skip_held, Presence::kMayLack},
                      Field{"force", &D::force, Presence::kMayLack},
                      Field{"force_clock", &D::force_clock, Presence::kMayLack},
                      Field{"deleted_before", &D::deleted_before, Presence::kMayLack}};
  }
};

template <>
struct FieldsOf<HeldVersion> {
  static constexpr auto list() {
    return std::tuple{Field{"version", &HeldVersion::number},
                      Field{"reason", &HeldVersion::reason}};
  }
};

template <>
struct FieldsOf<DeletionForecast> {
  static constexpr auto list() {
    using D = DeletionForecast;
    return std::tuple{Field{"freed_bytes", &D::freed_bytes},
                      Field{"dead_bytes", &D::dead_bytes},
                      Field{"chunks", &D::chunks},
                      Field{"chunk_bytes", &D::chunk_bytes},
                      Field{"waiting_bytes", &D::waiting_bytes},
                      Field{"versions", &D::versions},
                      Field{"waiting_for", &D::waiting_for},
                      Field{"held", &D::held}};
  }
};

/// Without `damaged`, which only the report of an arranging has.
template <>
struct FieldsOf<ArrangeProgress> {
  static constexpr auto list() {
    using A = ArrangeProgress;
    return std::tuple{Field{"bytes_written", &A::bytes_written},
                      Field{"bytes_read", &A::bytes_read}, Field{"steps", &A::steps}};
  }
};

template <>
struct JsonOf<ArrangeReport> {
  [[nodiscard]] static Json write(const ArrangeReport& report);
  [[nodiscard]] static std::optional<ArrangeReport> read(const Json& json);
};

/// Each value of the next four types has a word.
template <>
struct JsonOf<ArrangePolicyKind> {
  [[nodiscard]] static Json write(ArrangePolicyKind policy) { return name_of(policy); }
  [[nodiscard]] static std::optional<ArrangePolicyKind> read(const Json& json);
};
template <>
struct JsonOf<Placement> {
  [[nodiscard]] static Json write(Placement placement) { return placement_name(placement); }
  [[nodiscard]] static std::optional<Placement> read(const Json& json);
};
template <>
struct JsonOf<Rewrite> {
  [[nodiscard]] static Json write(Rewrite rewrite) { return rewrite_name(rewrite); }
  [[nodiscard]] static std::optional<Rewrite> read(const Json& json);
};
template <>
struct JsonOf<PoolIndexChoice> {
  [[nodiscard]] static Json write(const PoolIndexChoice& choice) { return pool_index_text(choice); }
  [[nodiscard]] static std::optional<PoolIndexChoice> read(const Json& json);
};

template <>
struct FieldsOf<ArrangeSettings> {
  static constexpr auto list() {
    using A = ArrangeSettings;
    return std::tuple{Field{"policy", &A::policy},
                      Field{"batch", &A::batch},
                      Field{"dead_permille", &A::dead_permille},
                      Field{"fan", &A::fan},
                      Field{"window", &A::window},
                      Field{"parity_percent", &A::parity_percent},
                      Field{"delta", &A::delta, Presence::kUnlessDefault}};
  }
};

template <>
struct FieldsOf<SeriesSettings> {
  static constexpr auto list() {
    return std::tuple{Field{"placement", &SeriesSettings::placement},
                      Field{"rewrite", &SeriesSettings::rewrite}};
  }
};

template <>
struct FieldsOf<SeriesOptions> {
  static constexpr auto list() {
    return std::tuple{Field{"placement", &SeriesOptions::placement},
                      Field{"rewrite", &SeriesOptions::rewrite}};
  }
};

template <>
struct FieldsOf<PoolStream> {
  static constexpr auto list() {
    using P = PoolStream;
    return std::tuple{Field{"series", &P::series},       Field{"name", &P::name},
                      Field{"open", &P::is_open},        Field{"entries", &P::entries},
                      Field{"locality", &P::locality},   Field{"lookups", &P::lookups},
                      Field{"hits", &P::hits},           Field{"run_threshold", &P::run_threshold},
                      Field{"admitted", &P::is_admitted}};
  }
};

template <>
struct FieldsOf<DirectoryIdentity> {
  static constexpr auto list() {
    return std::tuple{Field{"device", &DirectoryIdentity::device},
                      Field{"inode", &DirectoryIdentity::inode}};
  }
};

template <>
struct FieldsOf<TransferProgress> {
  static constexpr auto list() {
    using T = TransferProgress;
    return std::tuple{Field{"files", &T::files_done}, Field{"bytes", &T::bytes_done},
                      Field{"bytes_total", &T::bytes_total}};
  }
};

template <>
struct FieldsOf<TransferReport> {
  static constexpr auto list() {
    using T = TransferReport;
    return std::tuple{Field{"entries", &T::entries}, Field{"unchanged", &T::unchanged},
                      Field{"removed", &T::removed}, Field{"bytes", &T::bytes},
                      Field{"problems", &T::problems, Presence::kMayLack}};
  }
};

}  // namespace varve::control
