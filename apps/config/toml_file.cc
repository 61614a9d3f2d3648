// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * The one C++ file of the command: Debian has no TOML parser in C. No exception leaves it.
 */
#include "apps/config/toml_file.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <sstream>
#include <string>
#include <sys/stat.h>
#include <toml++/toml.h>
#include <vector>

namespace
{

struct mistake {
	unsigned int line;
	std::string reason;
};

struct value {
	std::string section, name, text;
	unsigned int line;
	bool is_boolean, is_in_list;
};

unsigned int line_of(const toml::node &node)
{
	return node.source().begin.line;
}

/* A number as the command line takes it: 4.0 is "4". */
std::string text_of(const toml::node &node, const std::string &name)
{
	std::ostringstream text;

	if (const auto *string = node.as_string())
		return string->get();
	if (const auto *integer = node.as_integer())
		text << integer->get();
	else if (const auto *real = node.as_floating_point())
		text << real->get();
	else if (const auto *boolean = node.as_boolean())
		text << (boolean->get() ? "true" : "false");
	else
		throw mistake{ line_of(node), name + ": expected a string, a number, true, false, "
						     "or a list of such" };
	return text.str();
}

void add(std::vector<value> &values, const std::string &section, const std::string &name,
	 const toml::node &node)
{
	const auto *list = node.as_array();

	if (!list) {
		values.push_back({ section, name, text_of(node, name), line_of(node),
				   node.is_boolean(), false });
		return;
	}
	for (const auto &element : *list)
		values.push_back({ section, name, text_of(element, name), line_of(element),
				   element.is_boolean(), true });
}

std::vector<value> values_of(const toml::table &root)
{
	std::vector<value> values;

	for (const auto &[section, node] : root) {
		const std::string called(section.str());
		const auto *table = node.as_table();

		if (!table)
			throw mistake{ line_of(node),
				       called + ": stands in no section, such as [serve]" };
		values.push_back({ called, "", "", line_of(node), false, false });
		for (const auto &[name, inner] : *table)
			add(values, called, std::string(name.str()), inner);
	}
	return values;
}

char *copy(const std::string &text)
{
	char *copied = strdup(text.c_str());

	if (!copied)
		throw std::bad_alloc();
	return copied;
}

void hand_over(const std::vector<value> &values, struct toml_file *file)
{
	file->entries =
		static_cast<struct toml_entry *>(calloc(values.size() + 1, sizeof(*file->entries)));
	if (!file->entries)
		throw std::bad_alloc();
	for (const auto &value : values) {
		struct toml_entry *entry = &file->entries[file->count++];

		entry->section = copy(value.section);
		entry->name = copy(value.name);
		entry->text = copy(value.text);
		entry->line = value.line;
		entry->is_boolean = value.is_boolean;
		entry->is_in_list = value.is_in_list;
	}
}

void read_into(const char *path, struct toml_file *file)
{
	std::ifstream in(path);
	std::ostringstream text;
	struct stat st;

	if (!in)
		throw errno ? errno : EIO;
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		throw EISDIR;
	text << in.rdbuf();
	if (in.bad())
		throw EIO;
	hand_over(values_of(toml::parse(text.str())), file);
}

} // namespace

extern "C" int toml_file_read(const char *path, struct toml_file *file, char *error, size_t size)
{
	int rc;

	*file = {};
	errno = 0;
	try {
		read_into(path, file);
		return 0;
	} catch (const toml::parse_error &wrong) {
		rc = -EINVAL;
		snprintf(error, size, "%s:%u: %s", path, wrong.source().begin.line,
			 std::string(wrong.description()).c_str());
	} catch (const mistake &wrong) {
		rc = -EINVAL;
		snprintf(error, size, "%s:%u: %s", path, wrong.line, wrong.reason.c_str());
	} catch (int number) {
		rc = -number;
		snprintf(error, size, "%s: %s", path, strerror(number));
	} catch (const std::exception &wrong) {
		rc = -ENOMEM;
		snprintf(error, size, "%s: %s", path, wrong.what());
	}
	toml_file_free(file);
	return rc;
}

extern "C" void toml_file_free(struct toml_file *file)
{
	for (size_t i = 0; i < file->count; i++) {
		free(file->entries[i].section);
		free(file->entries[i].name);
		free(file->entries[i].text);
	}
	free(file->entries);
	*file = {};
}
