locals {
  name  = "demo-${basename(path.cwd)}"
  cidr  = "10.30.0.0/16"
  zones = slice(data.zones.available.names, 0, 3)
}

################################################################################
# The cluster
################################################################################

module "cluster" {
  source = "../.."

  name = local.name

  addons = {
    dns     = {}
    pod-net = {}
  }

  # labels = merge(local.labels, {
  #   "example/zone" = local.zone
  # })

  labels = merge(local.labels, {
    # Only one of them may have it.
    "example/discovery" = local.name
  })
}

resource "helm_release" "scaler" {
  name       = "scaler"
  repository = "oci://registry.example/scaler"
  chart      = "scaler"
  version    = "1.1.0"

  values = [
    <<-EOT
    dns: Default
    settings:
      cluster: ${module.cluster.name}
      module "none" {
        source = "https://h.example/x"
      }
    EOT
  ]
}

module "network" {
  source  = "acme/network/aws"
  version = "~> 5.0"

  zones   = local.zones
  private = [for at, zone in local.zones : cidrsubnet(local.cidr, 4, at)]

  labels = {
    "example/internal" = 1
  }
}
