// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Walks a directory by std::filesystem, and prints each file with its first line. */
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

int main(int, char **argv)
{
	namespace fs = std::filesystem;

	std::cout << fs::canonical(argv[1]).string() << '\n';
	for (const auto &entry : fs::recursive_directory_iterator(fs::canonical(argv[1]))) {
		std::string line;

		if (entry.is_symlink())
			line = fs::read_symlink(entry.path()).string();
		else if (entry.is_regular_file())
			std::getline(std::ifstream(entry.path()) >> std::ws, line);
		std::cout << entry.path().filename().string() << '=' << line << '\n';
	}
}
