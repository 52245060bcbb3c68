# Pinned to a commit.

module "network" {
  source = "git::https://git.example/infra/network.git?ref=6b1f0d8e4c7a93525d0e8b1a7f6c3d924e5b80af"

  name = "main"
  cidr = "10.20.0.0/16"

  zones   = ["west-a", "west-b"]
  private = ["10.20.1.0/24", "10.20.2.0/24"]

  tags = {
    Terraform = "true"
    Owner = "network"
  }
}

module "log_group" {
  source  = "git::https://git.example/infra/logs.git//modules/log-group?ref=d83c5b0e7f1a42961d4e9c0b8a7f6e5310c2d4b9"

  name = "audit"
  days = 120
}

// Not pinned.

module "registry" {
  source  = "acme/logs/aws//modules/log-group"
  version = "4.3.0"
}

module "tag" {
  source = "git::https://git.example/infra/network.git?ref=v5.0.0"
}

module "branch" {
  source = "git::https://git.example/infra/network.git?ref=next_release"
}

/* Its own. */

module "beside" {
  source = "./beside"
}

module "above" {
  source = "../above"
}
