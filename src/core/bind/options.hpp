// One dict of options, read by name into a struct.
//
// Each options struct has a function `read(OptionsReader&, Struct&)` beside its binding that names every
// field once. `options_from` calls it. A missing key is a KeyError; an unknown key and a value of the wrong
// type are TypeErrors. Every error names the key.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "bind/bind.hpp"

namespace labelwood::bind {

class OptionsReader {
  public:
    explicit OptionsReader(const nb::dict& given) : given_(given) {}

    // A bool, a number that fits the field, or an array.
    template <class T>
    void read(const char* name, T& field) {
        constexpr bool is_bool = std::is_same_v<T, bool>, is_integer = std::is_integral_v<T> && !is_bool;
        const nb::object value = take(name);
        if constexpr (is_integer) {
            if (read_integer(value, field)) return;
        } else if constexpr (std::is_floating_point_v<T>) {
            double number = 0.0;
            if (!PyBool_Check(value.ptr()) && nb::try_cast(value, number, true)) {
                field = static_cast<T>(number);
                if (std::isfinite(field) == std::isfinite(number)) return;  // else it does not fit
            }
        } else if (nb::try_cast(value, field, false)) {
            return;
        }
        const char* wanted = is_bool                       ? "a bool"
                             : is_integer                  ? "an integer in range"
                             : std::is_floating_point_v<T> ? "a number"
                                                           : "an array of its type";
        refuse(name, wanted, value);
    }

    // An array of one of several types.
    template <class... Types>
    void read_any(const char* name, AnyArray& field) {
        read(name, field);
        if (((field.dtype() == nb::dtype<Types>()) || ...)) return;
        refuse(name, "an array of its type", nb::borrow(PyDict_GetItemString(given_.ptr(), name)));
    }

    // A view of an array; the dict owns the array.
    template <class T>
    void view(const char* name, Span<const T>& field) {
        Array<T> array;
        read(name, array);
        field = {array.data(), static_cast<int64_t>(array.shape(0))};
    }

    // An enum whose values are 0, 1, ... in the order of the names.
    template <class Enum>
    void choose(const char* name, Enum& field, std::initializer_list<std::string_view> names) {
        const nb::object value = take(name);
        std::string wanted = "one of", given;
        if (nb::try_cast(value, given)) {
            const auto found = std::find(names.begin(), names.end(), given);
            field = static_cast<Enum>(found - names.begin());
            if (found != names.end()) return;
        }
        for (const std::string_view each : names) wanted.append(" ").append(each);
        refuse(name, wanted, value);
    }

    // Refuses keys that nobody read.
    void end() const {
        if (read_.size() == given_.size()) return;
        for (const auto [key, value] : given_) {
            const std::string name = nb::cast<std::string>(nb::str(key));
            if (std::find(read_.begin(), read_.end(), name) == read_.end()) {
                throw nb::type_error(("unknown option " + name).c_str());
            }
        }
    }

  private:
    nb::object take(const char* name) {
        PyObject* found = PyDict_GetItemString(given_.ptr(), name);
        if (found == nullptr) throw nb::key_error((std::string("missing option ") + name).c_str());
        read_.emplace_back(name);
        return nb::borrow(found);
    }

    [[noreturn]] static void refuse(const char* name, const std::string& wanted, const nb::object& value) {
        const std::string given = nb::cast<std::string>(nb::repr(value));
        throw nb::type_error(("option " + std::string(name) + " must be " + wanted + "; got " + given).c_str());
    }

    const nb::dict& given_;
    std::vector<std::string_view> read_;
};

template <class Struct>
Struct options_from(const nb::dict& given, void (*read)(OptionsReader&, Struct&)) {
    OptionsReader options(given);
    Struct out{};
    read(options, out);
    options.end();
    return out;
}

}  // namespace labelwood::bind
